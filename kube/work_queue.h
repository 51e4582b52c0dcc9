// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_WORK_QUEUE_H_
#define RAILHEAD_KUBE_WORK_QUEUE_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/monotonic.h"
#include "kube/queue_state.h"

namespace railhead::kube {

// QueueState between threads: those that learn of work add items, workers take them. Thread-safe.
//
//   while (!queue.is_shut_down()) {
//     const std::optional<std::string> item = queue.Take(absl::Seconds(1));
//     if (!item) continue;
//     Reconcile(*item).ok() ? queue.Finish(*item) : queue.Retry(*item);
//   }
class WorkQueue {
 public:
  // `clock` is monotonic, and called by several threads. `group_of`: as of QueueState.
  explicit WorkQueue(BackoffOptions backoff, Random random = SystemRandom(),
                     std::function<absl::Time()> clock = MonotonicNow, GroupOf group_of = nullptr);

  void Add(const std::string& item) { AddAfter(item, absl::ZeroDuration()); }
  void AddAfter(const std::string& item, absl::Duration delay);

  // An item that is due, or nothing when none is within `patience` or the queue is shut down.
  std::optional<std::string> Take(absl::Duration patience);
  void Finish(const std::string& item);
  // It is done; looked at again after the pause, not earlier.
  void Rest(const std::string& item, absl::Duration pause);
  // The pause before it is due again, whatever news there is.
  absl::Duration Retry(const std::string& item);

  // Wakes all who wait in Take; nothing is handed out any more. Work in hand may be finished.
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

#endif  // RAILHEAD_KUBE_WORK_QUEUE_H_
