// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/transfer_stillness.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace railhead::recorder {
namespace {

// Equal for both ranks of a pair: if they cannot list all their peers, both list each other, or
// neither does. Another order for each query, so that no pair is left out for long.
uint64_t OrderOf(int one, int other, uint32_t query) {
  // The end of SplitMix64.
  uint64_t mixed = (static_cast<uint64_t>(std::min(one, other)) << 32U |
                    static_cast<uint64_t>(std::max(one, other))) +
                   (query + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31U;
}

StillTransfers::Peers Some(std::vector<int> peers, int rank, uint32_t query) {
  peers.erase(
      std::remove_if(peers.begin(), peers.end(),
                     [rank](int peer) { return peer == rank || peer == TransferStillness::kAny; }),
      peers.end());
  StillTransfers::Peers some;
  some.all = static_cast<uint32_t>(peers.size());
  std::sort(peers.begin(), peers.end(), [rank, query](int a, int b) {
    return std::tuple(OrderOf(rank, a, query), a) < std::tuple(OrderOf(rank, b, query), b);
  });
  peers.resize(std::min(peers.size(), StillTransfers::kMostPeers));
  some.ranks = std::move(peers);
  return some;
}

bool Has(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

void TransferStillness::Look(absl::Time now, const std::map<int, Peer>& peers) {
  // A process that was stopped itself has not observed the others in that time.
  if (now - looked_ > timeout_ / 2) peers_.clear();
  looked_ = now;
  std::map<int, Since> next;
  for (const auto& [rank, peer] : peers) {
    const auto before = peers_.find(rank);
    Since same;
    if (before != peers_.end() && before->second.progress == peer.progress) same = before->second;
    Since& since = next[rank];
    since.progress = peer.progress;
    if (peer.under_way) since.under_way = std::min(same.under_way, now);
    if (peer.unfinished) since.unfinished = std::min(same.unfinished, now);
  }
  peers_ = std::move(next);
}

std::vector<int> TransferStillness::UnderWay(absl::Time now, absl::Duration time) const {
  std::vector<int> ranks;
  for (const auto& [rank, since] : peers_) {
    if (now - since.under_way >= time) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> TransferStillness::Unfinished(absl::Time now, absl::Duration time) const {
  std::vector<int> ranks;
  for (const auto& [rank, since] : peers_) {
    if (now - since.unfinished >= time) ranks.push_back(rank);
  }
  return ranks;
}

StillTransfers TransferStillness::At(absl::Time now, int rank, uint32_t query) const {
  StillTransfers answer;
  for (const auto& [peer, since] : peers_) {
    answer.still = std::max(answer.still, now - since.unfinished);
  }
  const std::vector<int> unfinished = Unfinished(now, timeout_);
  answer.from_any = Has(unfinished, kAny);
  answer.under_way = Some(UnderWay(now, timeout_), rank, query);
  answer.unfinished = Some(unfinished, rank, query);
  return answer;
}

std::vector<std::pair<int, int>> StuckPairs(const std::vector<Seen>& ranks) {
  const auto answered = [](const Seen& seen) {
    return seen.how == Seen::How::kAnswered && seen.silence == absl::ZeroDuration();
  };
  std::set<std::pair<int, int>> pairs;
  for (int rank = 0; static_cast<size_t>(rank) < ranks.size(); ++rank) {
    const Seen& seen = ranks[static_cast<size_t>(rank)];
    if (!answered(seen)) continue;
    for (const int peer : seen.position.transfers.under_way.ranks) {
      if (pairs.size() == kMostPairs) break;
      if (peer < 0 || static_cast<size_t>(peer) >= ranks.size() || peer == rank) continue;
      const Seen& other = ranks[static_cast<size_t>(peer)];
      const StillTransfers& its = other.position.transfers;
      if (!answered(other)) continue;
      if (its.from_any || Has(its.under_way.ranks, rank) || Has(its.unfinished.ranks, rank)) {
        pairs.emplace(std::min(rank, peer), std::max(rank, peer));
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace railhead::recorder
