// SPDX-License-Identifier: Apache-2.0
//
// Thread-safe work queue: QueueState (queue_state.h) with a mutex and a clock. Event handlers add
// items; workers, such as the operator's controllers, take them.
//
//   while (!queue.is_shut_down()) {
//     const std::optional<std::string> item = queue.Take(absl::Seconds(1));
//     if (!item) continue;
//     Reconcile(*item).ok() ? queue.Finish(*item) : queue.Retry(*item);
//   }
#ifndef RAILHEAD_KUBE_QUEUE_WORK_QUEUE_H_
#define RAILHEAD_KUBE_QUEUE_WORK_QUEUE_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/monotonic.h"
#include "kube/queue/queue_state.h"

namespace railhead::kube {

class WorkQueue {
 public:
  // `clock` is monotonic and called concurrently. `group_of`: as in QueueState.
  explicit WorkQueue(BackoffOptions backoff, Random random = SystemRandom(),
                     std::function<absl::Time()> clock = MonotonicNow, GroupOf group_of = nullptr);

  void Add(const std::string& item) { AddAfter(item, absl::ZeroDuration()); }
  void AddAfter(const std::string& item, absl::Duration delay);

  // Waits for an item that is due, and returns it; nullopt if this takes longer than the limit, or
  // if the queue is shut down.
  std::optional<std::string> Take(absl::Duration patience);
  void Finish(const std::string& item);
  // Success; runs again after `pause`, not earlier.
  void Rest(const std::string& item, absl::Duration pause);
  // Failure; returns the backoff, which Add() does not shorten.
  absl::Duration Retry(const std::string& item);

  // As QueueState::Clear.
  void Clear();
  // Wakes all callers of Take, which then return nullopt. Items in progress may be finished.
  void ShutDown();
  bool is_shut_down() const;

 private:
  const std::function<absl::Time()> clock_;
  mutable std::mutex mutex_;  // guards all below
  QueueState state_;
  bool shut_down_ = false;
  std::condition_variable changed_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_QUEUE_WORK_QUEUE_H_
