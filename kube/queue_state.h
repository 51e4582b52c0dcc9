// SPDX-License-Identifier: Apache-2.0
//
// What there is to do, by the name of what it is about. Pure: the time comes from outside.
#ifndef RAILHEAD_KUBE_QUEUE_STATE_H_
#define RAILHEAD_KUBE_QUEUE_STATE_H_

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

// The group of an item, such as its namespace.
using GroupOf = std::function<std::string(const std::string& item)>;

// The part of "NAMESPACE/..." before the slash.
std::string NamespaceOfItem(const std::string& item);

// An item waits at most once, however often it is added, and is never in two hands: one that is
// added while it is being worked on is done again afterwards. Nothing is kept about an item that
// neither waits nor is being worked on. Groups take turns, however many items one of them has: an
// item of a group that has none in the queue waits for one of each other group at most. Not
// thread-safe.
class QueueState {
 public:
  // Without `group_of` all items are of one group.
  QueueState(BackoffOptions backoff, Random random, GroupOf group_of = nullptr);

  // Makes `item` due at `due`; one that waits already is done at the earlier of both times, but not
  // before its pause is over.
  void Add(const std::string& item, absl::Time due);

  // Of the group whose turn it is, the item that has been due for longest at `now`; of several, the
  // one that was added first. It is in the caller's hands until Finish, Rest or Retry.
  std::optional<std::string> Take(absl::Time now);

  // It is done, and its failures are forgotten.
  void Finish(const std::string& item);
  // It is done, its failures are forgotten, and it is looked at again at `until`. News do not make
  // that earlier.
  void Rest(const std::string& item, absl::Time until);
  // It failed: it is due again after a pause that grows with every failure in a row. News do not
  // cut the pause: what failed would fail again. The pause.
  absl::Duration Retry(const std::string& item, absl::Time now);

  // When the next item is due; InfiniteFuture when none waits.
  absl::Time NextDue() const;
  size_t waiting() const { return waiting_; }

 private:
  struct Entry {
    bool at_work = false;
    std::optional<absl::Time> due;  // at work: when it is due again
    absl::Time paused_until = absl::InfinitePast();
    uint64_t serial = 0;  // of the call that first added it
    int failures = 0;
  };
  using Position = std::tuple<absl::Time, uint64_t, std::string>;

  // Of the items that wait and are not at work.
  struct Group {
    std::set<Position> order;
    uint64_t turn = 0;  // of the latest item that was taken of it; the lowest is next
  };

  void Wait(absl::Time due, uint64_t serial, const std::string& item);
  // Of an item at work.
  void Pause(const std::string& item, absl::Time until, int failures);

  const BackoffOptions backoff_;
  const Random random_;
  const GroupOf group_of_;
  uint64_t serial_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Group> groups_;  // none is empty
  size_t waiting_ = 0;                   // items in all of them
  uint64_t turn_ = 0;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_QUEUE_STATE_H_
