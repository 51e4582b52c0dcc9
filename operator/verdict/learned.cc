// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/learned.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/verdict/runtime_page.h"

namespace railhead::op::verdict {
namespace {

bool IsBefore(const RankReport& a, const RankReport& b) {
  return std::tie(a.job, a.rank) < std::tie(b.job, b.rank);
}

bool Tells(const RankReport& rank) { return rank.start.has_value(); }

// The list where none but the report, the one before it and their pool may have it; else nothing.
template <typename T>
SharedList<T> OwnOf(const SharedList<T>& list) {
  return list.sharers() <= 3 ? list : SharedList<T>();
}

size_t BytesOf(const std::string& text) {
  return text.size() < sizeof(std::string) / 2 ? 0 : text.size() + 1;
}

}  // namespace

std::shared_ptr<const RuntimeReport> Learn(const std::shared_ptr<const RuntimeReport>& before,
                                           const std::shared_ptr<const RuntimeReport>& now) {
  if (now == nullptr || std::none_of(now->ranks.begin(), now->ranks.end(), Tells)) return before;
  std::vector<RankReport> ranks;
  std::copy_if(now->ranks.begin(), now->ranks.end(), std::back_inserter(ranks), Tells);
  size_t kept = 0;
  if (before != nullptr) {
    for (const RankReport& rank : before->ranks) {
      if (ranks.size() >= kMaxRanks) break;
      if (std::any_of(now->ranks.begin(), now->ranks.end(), [&rank](const RankReport& other) {
            return Tells(other) && other.job == rank.job && other.rank == rank.rank;
          })) {
        continue;
      }
      ranks.push_back(rank);
      ++kept;
    }
  }
  if (kept == 0 && ranks.size() == now->ranks.size()) return now;
  std::sort(ranks.begin(), ranks.end(), IsBefore);
  return std::make_shared<const RuntimeReport>(RuntimeReport{std::move(ranks)});
}

size_t BytesOf(const RuntimeReport& report) {
  size_t bytes = sizeof(report);
  for (const RankReport& rank : report.ranks) {
    bytes += sizeof(rank) + BytesOf(rank.job) + BytesOf(rank.degraded);
    if (rank.start.has_value()) {
      const RankStart& start = *rank.start;
      bytes += BytesOf(start.transport) + BytesOf(start.requested) + BytesOf(start.fallback) +
               BytesOf(start.trouble) + BytesOf(start.pod);
    }
    for (const GivenRail& rail : OwnOf(rank.given)) {
      bytes += sizeof(rail) + BytesOf(rail.device) + BytesOf(rail.link_layer) + BytesOf(rail.rate) +
               BytesOf(rail.trouble) + BytesOf(rail.cause);
    }
    for (const UsedRail& rail : OwnOf(rank.used)) {
      bytes += sizeof(rail) + BytesOf(rail.device) + BytesOf(rail.transport);
    }
  }
  return bytes;
}

}  // namespace railhead::op::verdict
