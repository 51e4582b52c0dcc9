// SPDX-License-Identifier: Apache-2.0
//
// WorkLock: which one of several threads works on an object. A thread that needs work done does it
// itself if no other thread is at work, without a hand-over; otherwise it waits until the other
// thread has done it, or leaves. Used by the transfer lane.
#ifndef RAILHEAD_RUNTIME_BASE_WORK_LOCK_H_
#define RAILHEAD_RUNTIME_BASE_WORK_LOCK_H_

#include <atomic>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "runtime/base/condition.h"

namespace railhead {

// Thread-safe.
class WorkLock {
 public:
  // Takes the lock if no thread has it. The work of its last owner is visible then.
  bool TryLock() {
    return !locked_.load(std::memory_order_seq_cst) &&
           !locked_.exchange(true, std::memory_order_seq_cst);
  }
  // Waits until this thread has the lock, `done` or the deadline. Returns true if it has the lock.
  // The thread that has it calls WakeWaiters when `done` becomes true for another one. `done` must
  // be quick: it may run with a mutex held.
  template <class Done>
  bool LockUnless(Done done, absl::Time deadline = absl::InfiniteFuture()) {
    // Work is mostly short.
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return false;
      if (TryLock()) return true;
      std::this_thread::yield();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    // In one order with Unlock: it sees this thread, or this thread sees that the lock is free.
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    bool locked = false;
    changed_.WaitUntil(lock, deadline, [&] {
      if (done()) return true;
      locked = TryLock();
      return locked;
    });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return locked;
  }
  void Unlock() {
    locked_.store(false, std::memory_order_seq_cst);
    if (waiting_.load(std::memory_order_seq_cst) > 0) WakeWaiters();
  }

  // Returns true if other threads wait. A thread that has just begun to wait may not be seen.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // Tells waiting threads that something is done. They see what this thread did before.
  void WakeWaiters() {
    // In one order with a thread that begins to wait: it sees what is done, or is seen.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!wanted()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.NotifyAll();
  }

 private:
  static constexpr int kLooks = 20;

  std::atomic<bool> locked_{false};
  std::atomic<int> waiting_{0};
  std::mutex mutex_;
  Condition changed_;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_WORK_LOCK_H_
