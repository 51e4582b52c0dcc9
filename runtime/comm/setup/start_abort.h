// SPDX-License-Identifier: Apache-2.0
//
// Ends the start of a communicator from another thread. Until ranks have met, the start asks now
// and then whether it is to go on; from then on the job is told, and that ends everything.
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
  // Ends the start with this error. The first one counts.
  void Abort(const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (why_.ok()) why_ = why;
    if (watch_ != nullptr) watch_->Announce(why_).IgnoreError();
  }

  // Why the start is to end; OK while it may go on.
  absl::Status why() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return why_;
  }

  // While one lives, the job that the watch looks after is told. The watch outlives it.
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
