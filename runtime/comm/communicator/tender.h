// SPDX-License-Identifier: Apache-2.0
//
// Tender: serves other ranks while none of the communicator's calls runs, in the process's progress
// thread (net::WatchThread): rails are tended, and messages for transfers find a lane.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_TENDER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_TENDER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/net/watch_thread.h"

namespace railhead::comm {

class Tender final : private net::WatchThread::Client {
 public:
  // `tend` must not wait for other ranks. The thread calls it every `pause` until the result is
  // destroyed, which waits for a call that runs.
  static absl::StatusOr<std::unique_ptr<Tender>> Start(absl::Duration pause,
                                                       std::function<void(absl::Time now)> tend);
  ~Tender() override;
  Tender(const Tender&) = delete;
  Tender& operator=(const Tender&) = delete;

 private:
  Tender(std::shared_ptr<net::WatchThread> thread, absl::Duration pause,
         std::function<void(absl::Time now)> tend)
      : thread_(std::move(thread)), pause_(pause), tend_(std::move(tend)) {}

  std::optional<absl::Time> Turn() override;

  const std::shared_ptr<net::WatchThread> thread_;
  const absl::Duration pause_;
  const std::function<void(absl::Time now)> tend_;
  std::atomic<bool> ending_{false};
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_TENDER_H_
