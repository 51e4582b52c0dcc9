// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/seats.h"

#include <algorithm>
#include <utility>

namespace railhead::op::gangs {

void Seats::Update(const std::vector<Gang>& gangs, absl::Time now) {
  std::map<std::string, OfGang> kept;
  std::set<std::string> seen_failed;
  empty_.clear();
  for (const Gang& gang : gangs) {
    OfGang known = std::move(gangs_[gang.key]);
    std::set<std::string> listed;
    for (const Released& lost : gang.lost) {
      listed.insert(lost.pod->uid);
      if (!lost.pod->failed) continue;
      seen_failed.insert(lost.pod->uid);
      if (seen_failed_.contains(lost.pod->uid)) continue;
      failed_[gang.lineage][lost.node] = now + kAvoid;
    }
    std::erase_if(known.given_up, [&](const auto& uid) { return !listed.contains(uid); });

    std::map<int, Taken> by_rank;
    if (gang.begun()) {
      for (const Released& there : gang.released) {
        if (there.by_us && there.rank) by_rank[*there.rank] = {there.node, there.pod->uid};
      }
      for (const Released& lost : gang.lost) {
        // It holds its room itself until it is gone.
        if (lost.rank && !lost.pod->failed) {
          by_rank.try_emplace(*lost.rank, Taken{lost.node, lost.pod->uid});
        }
      }
      for (auto& [rank, taken] : known.by_rank) {
        if (by_rank.contains(rank) || gang.ended.contains(taken.uid)) continue;
        taken.gone = std::min(taken.gone, now);
        if (now - taken.gone < kKeep) {
          by_rank[rank] = std::move(taken);
        } else {
          known.given_up.insert(taken.uid);
        }
      }
      for (const Released& lost : gang.lost) {
        if (!lost.rank || by_rank.contains(*lost.rank)) continue;
        if (known.given_up.contains(lost.pod->uid)) continue;
        by_rank[*lost.rank] = {lost.node, lost.pod->uid, now};
      }
      std::vector<Seat> seats;
      for (const auto& [rank, taken] : by_rank) {
        if (taken.gone <= now && !taken.node.empty()) seats.push_back({rank, taken.node});
      }
      if (!seats.empty()) empty_[gang.key] = std::move(seats);
    }
    known.by_rank = std::move(by_rank);
    kept[gang.key] = std::move(known);
  }
  gangs_ = std::move(kept);
  seen_failed_ = std::move(seen_failed);
  for (auto& [lineage, nodes] : failed_) {
    std::erase_if(nodes, [now](const auto& entry) { return entry.second <= now; });
  }
  std::erase_if(failed_, [](const auto& entry) { return entry.second.empty(); });
}

std::map<std::string, std::set<std::string>> Seats::FailedOn(absl::Time now) const {
  std::map<std::string, std::set<std::string>> nodes;
  for (const auto& [lineage, failed] : failed_) {
    for (const auto& [node, until] : failed) {
      if (until > now) nodes[lineage].insert(node);
    }
  }
  return nodes;
}

absl::Time Seats::NextEnd() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [gang, known] : gangs_) {
    for (const auto& [rank, taken] : known.by_rank) next = std::min(next, taken.gone + kKeep);
  }
  return next;
}

}  // namespace railhead::op::gangs
