// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/queue_state.h"

#include <algorithm>
#include <utility>

namespace railhead::kube {

std::string NamespaceOfItem(const std::string& item) { return item.substr(0, item.find('/')); }

QueueState::QueueState(BackoffOptions backoff, Random random, GroupOf group_of)
    : backoff_(backoff), random_(std::move(random)), group_of_(std::move(group_of)) {}

void QueueState::Add(const std::string& item, absl::Time due) {
  const auto at = entries_.try_emplace(item).first;
  Entry& entry = at->second;
  due = std::max(due, entry.paused_until);
  if (entry.due && *entry.due <= due) return;
  if (!entry.due) {
    entry.serial = ++serial_;
  } else if (!entry.at_work) {
    // It stays in its group, where it waits again at once.
    groups_.at(group_of_ ? group_of_(item) : "")
        .order.erase({*entry.due, entry.serial, &at->first});
    --waiting_;
  }
  entry.due = due;
  if (!entry.at_work) Wait(due, entry.serial, at->first);
}

void QueueState::Wait(absl::Time due, uint64_t serial, const std::string& item) {
  const auto [group, is_new] = groups_.try_emplace(group_of_ ? group_of_(item) : "");
  // Behind all that wait: one that comes back at once is not always the first.
  if (is_new) group->second.turn = turn_;
  group->second.order.emplace(due, serial, &item);
  ++waiting_;
}

std::optional<std::string> QueueState::Take(absl::Time now) {
  const auto due_of = [](const Group& group) { return std::get<absl::Time>(*group.order.begin()); };
  auto next = groups_.end();
  for (auto at = groups_.begin(); at != groups_.end(); ++at) {
    if (due_of(at->second) > now) continue;
    if (next == groups_.end() || std::pair(at->second.turn, due_of(at->second)) <
                                     std::pair(next->second.turn, due_of(next->second))) {
      next = at;
    }
  }
  if (next == groups_.end()) return std::nullopt;
  std::set<Position>& order = next->second.order;
  std::string item = *std::get<const std::string*>(*order.begin());
  order.erase(order.begin());
  --waiting_;
  next->second.turn = ++turn_;
  if (order.empty()) groups_.erase(next);
  Entry& entry = entries_.at(item);
  entry.at_work = true;
  entry.paused_until = absl::InfinitePast();
  entry.due.reset();
  return item;
}

void QueueState::Finish(const std::string& item) {
  const auto at = entries_.find(item);
  if (at == entries_.end() || !at->second.at_work) return;
  at->second.at_work = false;
  at->second.failures = 0;
  if (at->second.due) {
    Wait(*at->second.due, at->second.serial, at->first);
  } else {
    entries_.erase(at);
  }
}

void QueueState::Rest(const std::string& item, absl::Time until) { Pause(item, until, 0); }

absl::Duration QueueState::Retry(const std::string& item, absl::Time now) {
  const auto at = entries_.find(item);
  if (at == entries_.end() || !at->second.at_work) return absl::ZeroDuration();
  const int failures = at->second.failures + 1;
  const absl::Duration pause = PauseAfter(backoff_, failures, random_());
  Pause(item, now + pause, failures);
  return pause;
}

void QueueState::Pause(const std::string& item, absl::Time until, int failures) {
  const auto at = entries_.find(item);
  if (at == entries_.end() || !at->second.at_work) return;
  Entry& entry = at->second;
  entry.at_work = false;
  entry.failures = failures;
  entry.paused_until = until;
  // An item that was added while it was processed runs then, too.
  if (!entry.due) entry.serial = ++serial_;
  entry.due = until;
  Wait(until, entry.serial, at->first);
}

void QueueState::Clear() {
  groups_.clear();
  waiting_ = 0;
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.at_work; });
  for (auto& [item, entry] : entries_) entry.due.reset();
}

absl::Time QueueState::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, group] : groups_) {
    next = std::min(next, std::get<absl::Time>(*group.order.begin()));
  }
  return next;
}

}  // namespace railhead::kube
