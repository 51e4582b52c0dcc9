// SPDX-License-Identifier: Apache-2.0
//
// Work queue state: deduplication, due times and backoff, keyed by item name. Pure: no threads, no
// clock. WorkQueue (work_queue.h) adds both; controllers use that. As in client-go:
// - An item is queued at most once and processed by at most one worker.
// - An item added while it is processed runs again afterwards.
// Pass each item from Take() to exactly one of Finish() (success), Rest() (success, run again at a
// given time) or Retry() (failure, exponential backoff). Add() shortens neither wait.
#ifndef RAILHEAD_KUBE_QUEUE_QUEUE_STATE_H_
#define RAILHEAD_KUBE_QUEUE_QUEUE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "kube/backoff.h"

namespace railhead::kube {

// Returns the group of an item, such as its namespace.
using GroupOf = std::function<std::string(const std::string& item)>;

// Returns the part of "NAMESPACE/..." before the slash.
std::string NamespaceOfItem(const std::string& item);

// The queue. Keeps no state of items that are neither queued nor processed. Groups take turns,
// whatever their number of items: an item of a group without queued items waits for at most one
// item of each other group. Not thread-safe.
class QueueState {
 public:
  // Without `group_of`, all items are in one group.
  QueueState(BackoffOptions backoff, Random random, GroupOf group_of = nullptr);
  QueueState(const QueueState&) = delete;  // positions point into entries_
  QueueState& operator=(const QueueState&) = delete;

  // Queues `item` for `due`. If it is queued already, the earlier time applies, but never before
  // its backoff ends.
  void Add(const std::string& item, absl::Time due);

  // Takes an item due at `now` from the group whose turn it is: the one due for longest, or the
  // first added. The caller processes it until Finish, Rest or Retry.
  std::optional<std::string> Take(absl::Time now);

  // Ends processing with success and resets the failures.
  void Finish(const std::string& item);
  // Ends processing with success, resets the failures and queues the item for `until`; Add() cannot
  // make that earlier.
  void Rest(const std::string& item, absl::Time until);
  // Ends processing with failure. Returns the backoff, which grows with consecutive failures; Add()
  // does not shorten it.
  absl::Duration Retry(const std::string& item, absl::Time now);

  // Forgets the items that wait. Items being processed stay, and do not run again.
  void Clear();

  // Returns the due time of the next item; InfiniteFuture if none is queued.
  absl::Time NextDue() const;
  size_t waiting() const { return waiting_; }

 private:
  struct Entry {
    bool at_work = false;
    std::optional<absl::Time> due;  // if processed: when it runs again
    absl::Time paused_until = absl::InfinitePast();
    uint64_t serial = 0;  // order of the first Add
    int failures = 0;
  };
  // Due time, serial number, and item: a key of entries_. No two items have the same number.
  using Position = std::tuple<absl::Time, uint64_t, const std::string*>;

  // Queued items of a group that are not processed.
  struct Group {
    std::set<Position> order;
    uint64_t turn = 0;  // turn of its latest Take; the lowest is next
  };

  // `item`: the key of its entry.
  void Wait(absl::Time due, uint64_t serial, const std::string& item);
  // `item` is being processed.
  void Pause(const std::string& item, absl::Time until, int failures);

  const BackoffOptions backoff_;
  const Random random_;
  const GroupOf group_of_;
  uint64_t serial_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Group> groups_;  // never contains an empty group
  size_t waiting_ = 0;                   // items in all groups
  uint64_t turn_ = 0;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_QUEUE_QUEUE_STATE_H_
