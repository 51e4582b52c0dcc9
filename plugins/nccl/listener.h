// SPDX-License-Identifier: Apache-2.0
//
// Connection set-up: a receiver listens and accepts, a sender connects. No call waits for the other
// side.
#ifndef RAILHEAD_PLUGINS_NCCL_LISTENER_H_
#define RAILHEAD_PLUGINS_NCCL_LISTENER_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/nccl/connection.h"
#include "plugins/nccl/handle.h"
#include "plugins/nccl/local_rails.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/wake_event.h"

namespace railhead::nccl {

// Accepts the connections of one handle, over all of this process's rails. Connections outlive it.
// Thread-safe. `rails` must outlive it and its connections.
class Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const LocalRails& rails);

  const HandleBytes& handle() const { return handle_; }
  // Returns the next connection; null if no sender has called yet.
  absl::StatusOr<std::unique_ptr<Connection>> Accept();

 private:
  explicit Listener(const LocalRails& rails) : rails_(rails) {}

  const LocalRails& rails_;
  const std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  const std::shared_ptr<transport::WakeEvent> wake_ = std::make_shared<transport::WakeEvent>();
  std::string token_;
  HandleBytes handle_{};
  struct Open {
    const comm::ChosenRail* rail;
    std::shared_ptr<transport::Acceptor> acceptor;
  };
  std::array<std::vector<Open>, 2> acceptors_;  // by RailKind, as in the handle
  std::set<uint32_t> accepted_;                 // senders
};

// Connects to a listener. The rails connect later, and the connection fails if none does. `home`:
// the number of the rail that messages from or to GPU memory prefer.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const LocalRails& rails,
                                                    absl::Span<const char> handle,
                                                    std::optional<int> home = std::nullopt);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_LISTENER_H_
