// SPDX-License-Identifier: Apache-2.0
//
// Result of the backend's calls: done, failed, or pending. Thread-safe.
#ifndef RAILHEAD_PYTHON_TORCH_WORK_H_
#define RAILHEAD_PYTHON_TORCH_WORK_H_

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "condition.h"

namespace railhead_torch {

class RailWork : public c10d::Work {
 public:
  // `device`: where its tensors are, so that callbacks of the future get streams of it.
  RailWork(int rank, c10d::OpType type, c10::Device device)
      : Work(rank, type),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::ofTensors(),
            device.is_cpu() ? std::vector<c10::Device>() : std::vector<c10::Device>{device})) {}

  // State that waiters wait for. The thread that ran the call keeps only this: it must hold no
  // tensor when they wake up, as releasing the last reference to a tensor may need Python's lock,
  // and Python may be about to end.
  class Finished {
   public:
    bool is() const { return done_; }
    void Set() {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      changed_.NotifyAll();
    }
    // False if that is not within the timeout; 0 is none.
    bool Wait(std::chrono::milliseconds timeout) {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + timeout;
      while (!done_) {
        if (timeout.count() <= 0) {
          changed_.Wait(lock);
        } else if (!changed_.WaitUntil(lock, until) && !done_) {
          return false;
        }
      }
      return true;
    }

   private:
    std::mutex mutex_;
    Condition changed_;
    std::atomic<bool> done_ = false;
  };

  // Each once, by who has done the call, which then lets go of this and sets what it gets. Runs the
  // callbacks of the future.
  std::shared_ptr<Finished> Succeed(std::vector<at::Tensor> results) {
    results_ = results;
    future_->markCompleted(c10::IValue(std::move(results)));
    return finished_;
  }
  std::shared_ptr<Finished> Fail(std::exception_ptr why) {
    future_->setErrorIfNeeded(std::move(why));
    return finished_;
  }
  std::shared_ptr<Finished> Fail(const std::string& why) {
    return Fail(std::make_exception_ptr(c10::DistBackendError(
        c10::SourceLocation{__func__, __FILE__, __LINE__}, "railhead: " + why)));
  }

  bool isCompleted() override { return finished_->is(); }
  bool isSuccess() const override { return finished_->is() && !future_->hasError(); }
  std::exception_ptr exception() const override {
    return future_->hasError() ? future_->exception_ptr() : nullptr;
  }
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  void synchronize() override { wait(NoTimeout()); }

  // Throws the error of a failed call. If the timeout passes first, throws, and the call continues.
  bool wait(std::chrono::milliseconds timeout) override {
    if (!finished_->is() && !finished_->Wait(timeout)) {
      C10_THROW_ERROR(DistBackendError, c10::str("railhead: ", c10d::opTypeToString(opType_),
                                                 " was not done within ", timeout.count(), " ms"));
    }
    if (future_->hasError()) std::rethrow_exception(future_->exception_ptr());
    return true;
  }

 private:
  // 0 is torch's "no timeout".
  static std::chrono::milliseconds NoTimeout() { return std::chrono::milliseconds(0); }

  std::vector<at::Tensor> results_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  const std::shared_ptr<Finished> finished_ = std::make_shared<Finished>();
};

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_WORK_H_
