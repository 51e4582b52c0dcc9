// SPDX-License-Identifier: Apache-2.0
#include "placement/leaf_shares.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace railhead::placement {
namespace {

// The best way to leave an amount of room in the leaves up to some leaf.
struct Way {
  std::vector<int> cuts;  // [group][level], most important first
  size_t before = 0;      // the part of it that is left before the last of these leaves
};

}  // namespace

// The room left up to a border determines its position, so ways with the same room left can be
// compared. From one border to the next it suffices to leave nothing more, or exactly the amount
// that moves the border between two groups of some size: leaving less keeps all choices.
std::vector<int> ShareOut(const std::vector<ChosenLeaf>& leaves, int levels, int pods,
                          int gpus_per_pod, const std::vector<int64_t>& groups) {
  int64_t room = 0;
  for (const ChosenLeaf& leaf : leaves) room += leaf.room;
  const auto left = static_cast<size_t>(room - pods);
  const auto level_count = static_cast<size_t>(levels);
  std::vector<std::vector<std::optional<Way>>> ways(leaves.size() + 1);
  ways[0].resize(left + 1);
  ways[0][0] = Way{std::vector<int>(groups.size() * level_count, 0), 0};
  int64_t end = 0;  // rank at the border after a leaf, if nothing were left
  for (size_t i = 0; i < leaves.size(); ++i) {
    end += leaves[i].room;
    ways[i + 1].resize(left + 1);
    const bool last = i + 1 == leaves.size();
    for (size_t before = 0; before <= left; ++before) {
      if (!ways[i][before]) continue;
      const auto reach = [&](size_t after) {
        if (after > left || after - before >= static_cast<size_t>(leaves[i].room)) return;
        Way way{ways[i][before]->cuts, before};
        const int64_t border = (end - static_cast<int64_t>(after)) * gpus_per_pod;
        for (size_t group = 0; !last && group < groups.size(); ++group) {
          if (border % groups[group] == 0) continue;
          for (auto level = static_cast<size_t>(leaves[i].border); level < level_count; ++level) {
            ++way.cuts[group * level_count + level];
          }
        }
        std::optional<Way>& best = ways[i + 1][after];
        if (!best || way.cuts < best->cuts) best = std::move(way);
      };
      if (last) {
        reach(left);
        continue;
      }
      reach(before);
      for (const int64_t group : groups) {
        const int64_t period = group / std::gcd(group, int64_t{gpus_per_pod});  // in pods
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no group is empty
        reach(before + static_cast<size_t>((end - static_cast<int64_t>(before)) % period));
      }
    }
  }
  std::vector<int> shares(leaves.size());
  size_t after = left;
  for (size_t i = leaves.size(); i-- > 0;) {
    const size_t before = ways[i + 1][after]->before;
    shares[i] = leaves[i].room - static_cast<int>(after - before);
    after = before;
  }
  return shares;
}

}  // namespace railhead::placement
