// SPDX-License-Identifier: Apache-2.0
//
// Aborts the start of a communicator from another thread. Until the ranks have met, the start polls
// why(); afterwards Abort fails the job, which ends the start on all ranks.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_

#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "runtime/bootstrap/watch.h"

namespace railhead::comm {

// Thread-safe.
class StartAbort {
 public:
  // Aborts the start with this error. Later errors are ignored.
  void Abort(const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (why_.ok()) why_ = why;
    if (watch_ != nullptr) watch_->Announce(why_).IgnoreError();
  }

  // Returns why the start must end; OK while it may continue.
  absl::Status why() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return why_;
  }

  // Makes Abort fail the watchdog's job while it exists. The watchdog must outlive it.
  class Told {
   public:
    // `start` may be null.
    Told(std::shared_ptr<StartAbort> start, bootstrap::Watch& watch) : start_(std::move(start)) {
      if (start_ == nullptr) return;
      const std::lock_guard<std::mutex> lock(start_->mutex_);
      start_->watch_ = &watch;
      if (!start_->why_.ok()) watch.Announce(start_->why_).IgnoreError();
    }
    ~Told() {
      if (start_ == nullptr) return;
      const std::lock_guard<std::mutex> lock(start_->mutex_);
      start_->watch_ = nullptr;
    }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;

   private:
    const std::shared_ptr<StartAbort> start_;
  };

 private:
  mutable std::mutex mutex_;
  absl::Status why_;
  bootstrap::Watch* watch_ = nullptr;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_
