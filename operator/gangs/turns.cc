// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/turns.h"

#include <algorithm>
#include <utility>

namespace railhead::op::gangs {

bool Turns::Take(const std::string& gang) {
  if (due_.erase(gang) == 0) {
    if (for_new_ == 0 || last_.contains(gang)) return false;
    --for_new_;
  }
  taken_.insert(gang);
  return true;
}

absl::Time Turns::EndRound(const std::vector<std::string>& waiting, absl::Time now) {
  const absl::Duration pause = std::max(kAtSoonest, static_cast<double>(waiting.size()) * kForEach);
  std::map<std::string, absl::Time> last;
  std::vector<std::pair<absl::Time, std::string>> due;
  absl::Time next = absl::InfiniteFuture();
  for (const std::string& gang : waiting) {
    const auto known = last_.find(gang);
    absl::Time at = known == last_.end() ? absl::InfinitePast() : known->second;
    if (taken_.contains(gang) || due_.contains(gang)) at = now;
    if (at != absl::InfinitePast()) last[gang] = at;
    if (at + pause <= now) {
      due.emplace_back(at, gang);
    } else {
      next = std::min(next, at + pause);
    }
  }
  last_ = std::move(last);
  taken_.clear();
  due_.clear();
  // Longest wait for a turn first; new gangs come in the order of the queue.
  std::stable_sort(due.begin(), due.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < std::min(due.size(), kInARound); ++i) due_.insert(due[i].second);
  for_new_ = kInARound - due_.size();
  return due.empty() ? next : now + kNextRound;
}

}  // namespace railhead::op::gangs
