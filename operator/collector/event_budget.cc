// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/event_budget.h"

#include <algorithm>
#include <iterator>

namespace railhead::op {
namespace {

constexpr size_t kMostSpaces = 1000;  // then those that have their whole burst are forgotten

}  // namespace

void EventBudget::Fill(const kube::EventLimits& limits, absl::Time now, Bucket& bucket) {
  if (bucket.filled == absl::InfinitePast()) {
    bucket.tokens = limits.burst;
  } else {
    const double more = std::max(0.0, absl::FDivDuration(now - bucket.filled, limits.refill));
    bucket.tokens = std::min(limits.burst, bucket.tokens + more);
  }
  bucket.filled = now;
}

EventBudget::Bucket& EventBudget::BucketOf(const std::string& space, absl::Time now) {
  if (spaces_.size() >= kMostSpaces && !spaces_.contains(space)) {
    for (auto at = spaces_.begin(); at != spaces_.end();) {
      Fill(options_.of_one, now, at->second);
      at = at->second.tokens >= options_.of_one.burst ? spaces_.erase(at) : std::next(at);
    }
  }
  Bucket& bucket = spaces_[space];
  Fill(options_.of_one, now, bucket);
  return bucket;
}

bool EventBudget::Allows(const std::string& space, absl::Time now) {
  Fill(options_.all, now, all_);
  const Bucket& own = BucketOf(space, now);
  const bool was_silent = own.tokens > options_.of_one.burst / 2;
  return own.tokens >= 1 && all_.tokens >= (was_silent ? 1 : 1 + options_.reserve);
}

void EventBudget::Spend(const std::string& space, absl::Time now) {
  Fill(options_.all, now, all_);
  all_.tokens -= 1;
  BucketOf(space, now).tokens -= 1;
}

}  // namespace railhead::op
