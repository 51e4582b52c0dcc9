// SPDX-License-Identifier: Apache-2.0
#include "kube/queue_state.h"

#include <algorithm>
#include <utility>

namespace railhead::kube {

QueueState::QueueState(BackoffOptions backoff, Random random)
    : backoff_(backoff), random_(std::move(random)) {}

void QueueState::Add(const std::string& item, absl::Time due) {
  Entry& entry = entries_[item];
  due = std::max(due, entry.paused_until);
  if (entry.due && *entry.due <= due) return;
  if (!entry.due) {
    entry.serial = ++serial_;
  } else if (!entry.at_work) {
    order_.erase({*entry.due, entry.serial, item});
  }
  entry.due = due;
  if (!entry.at_work) order_.emplace(due, entry.serial, item);
}

std::optional<std::string> QueueState::Take(absl::Time now) {
  if (order_.empty() || std::get<absl::Time>(*order_.begin()) > now) return std::nullopt;
  std::string item = std::get<std::string>(std::move(order_.extract(order_.begin()).value()));
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
    order_.emplace(*at->second.due, at->second.serial, item);
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
  // What was added meanwhile is seen then, too.
  if (!entry.due) entry.serial = ++serial_;
  entry.due = until;
  order_.emplace(until, entry.serial, item);
}

absl::Time QueueState::NextDue() const {
  return order_.empty() ? absl::InfiniteFuture() : std::get<absl::Time>(*order_.begin());
}

}  // namespace railhead::kube
