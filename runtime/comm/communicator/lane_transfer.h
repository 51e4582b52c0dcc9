// SPDX-License-Identifier: Apache-2.0
//
// Transfer of rhIsend or rhIrecv, and its result. The thread that waits for it does the work of its
// lane (lane.h).
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_TRANSFER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_TRANSFER_H_

#include <atomic>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/fork.h"
#include "runtime/transfers/engine.h"

namespace railhead::comm {

class Lane;

// It must live until it is done, and may outlive its communicator. Thread-safe, except the fields
// of transfers::Transfer, which belong to the engine and may be read once the transfer is done.
class LaneTransfer final : public transfers::Transfer {
 public:
  bool IsDone() const { return done_.load(std::memory_order_acquire); }
  // Waits until it is done.
  void Wait();
  // Does what is possible now; returns whether it is done.
  bool Test();
  // Valid once it is done.
  const absl::Status& status() const { return status_; }

  // Returns true in a process forked after the transfer was started; it never completes there.
  bool IsForeign() const { return process_.IsForeign(); }

  // The lane's, which does not use it after End.
  void Belongs(std::shared_ptr<Lane> lane) { lane_ = std::move(lane); }
  void End(const absl::Status& status) {
    if (!status.ok()) status_ = status;
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  absl::Status status_;
  const OwnProcess process_;
  std::shared_ptr<Lane> lane_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_LANE_TRANSFER_H_
