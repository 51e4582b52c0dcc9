// SPDX-License-Identifier: Apache-2.0
//
// Aborts the start of a communicator from another thread. Until the ranks have met, the start polls
// why(); afterwards Abort fails the job, which ends the start on all ranks.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace railhead::comm {

// Thread-safe.
class StartAbort {
 public:
  // Aborts the start with this error. Later errors are ignored.
  void Abort(const absl::Status& why) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (why_.ok()) why_ = why;
    }
    Tell();
  }

  // Returns why the start must end; OK while it may continue. Never waits for Abort.
  absl::Status why() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return why_;
  }

  // Makes Abort call `fail`, which fails the job and may take seconds, while this object exists; at
  // once if the start is aborted already.
  class Told {
   public:
    using Fail = std::function<void(const absl::Status& why)>;
    // `start` may be null.
    Told(std::shared_ptr<StartAbort> start, Fail fail) : start_(std::move(start)) {
      if (start_ == nullptr) return;
      {
        const std::lock_guard<std::mutex> lock(start_->telling_);
        start_->fail_ = std::move(fail);
      }
      start_->Tell();
    }
    ~Told() {
      if (start_ == nullptr) return;
      const std::lock_guard<std::mutex> lock(start_->telling_);
      start_->fail_ = nullptr;
    }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;

   private:
    const std::shared_ptr<StartAbort> start_;
  };

 private:
  void Tell() {
    const std::lock_guard<std::mutex> lock(telling_);
    if (const absl::Status reason = why(); !reason.ok() && fail_ != nullptr) fail_(reason);
  }

  mutable std::mutex mutex_;
  absl::Status why_;
  std::mutex telling_;  // held while fail_ runs; taken before mutex_
  Told::Fail fail_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_START_ABORT_H_
