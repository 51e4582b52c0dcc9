// SPDX-License-Identifier: Apache-2.0
#include "placement/group_links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {
namespace {

constexpr size_t kMostSets = 4096;
constexpr size_t kMostAnswers = 64;

// Gbit/s between two groups, by their indices, the smaller first.
using Links = std::map<std::pair<int, int>, double>;

Links LinksOf(const fabric::FabricModel& model) {
  std::map<std::string, int> index;
  for (const fabric::FabricDomain& group : model.domains[0]) {
    index.emplace(group.name, static_cast<int>(index.size()));
  }
  Links links;
  for (const fabric::GlobalLink& link : model.global_links) {
    links[std::minmax(index.at(link.a), index.at(link.b))] = link.gbps;
  }
  return links;
}

LinkQuality QualityOf(const Links& links, Pattern pattern, const std::vector<int>& groups) {
  LinkQuality quality;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size(); ++j) {
      const bool neighbours = j == i + 1 || (i == 0 && j + 1 == groups.size());
      if (pattern == Pattern::kRing && !neighbours) continue;
      const auto link = links.find({groups[i], groups[j]});
      if (link == links.end()) {
        ++quality.missing;
      } else {
        quality.slowest_gbps = std::min(quality.slowest_gbps, link->second);
      }
    }
  }
  return quality;
}

// Advances `set` to the next set of the same size of `count` groups, in the order of the file;
// false after the last.
bool Next(std::vector<int>& set, int count) {
  const auto size = static_cast<int>(set.size());
  for (int i = size - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    if (set[at] == count - size + i) continue;
    std::iota(set.begin() + i, set.end(), set[at] + 1);
    return true;
  }
  return false;
}

}  // namespace

bool Better(const LinkQuality& a, const LinkQuality& b) {
  if (a.missing != b.missing) return a.missing < b.missing;
  return a.slowest_gbps > b.slowest_gbps;
}

LinkQuality QualityOf(const fabric::FabricModel& model, Pattern pattern,
                      const std::vector<int>& groups) {
  return QualityOf(LinksOf(model), pattern, groups);
}

std::vector<std::vector<int>> BetterLinkedGroups(const fabric::FabricModel& model, Pattern pattern,
                                                 const std::vector<int64_t>& room, int64_t pods,
                                                 const std::vector<int>& current) {
  const Links links = LinksOf(model);
  const LinkQuality now = QualityOf(links, pattern, current);
  std::vector<std::pair<LinkQuality, std::vector<int>>> found;
  std::vector<int> set(current.size());
  std::iota(set.begin(), set.end(), 0);
  size_t looked_at = 0;
  do {
    if (++looked_at > kMostSets) return {};
    int64_t together = 0;
    for (const int group : set) together += room[static_cast<size_t>(group)];
    if (together < pods) continue;
    const LinkQuality quality = QualityOf(links, pattern, set);
    if (Better(quality, now)) found.emplace_back(quality, set);
  } while (Next(set, static_cast<int>(room.size())));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return Better(a.first, b.first); });
  std::vector<std::vector<int>> sets;
  for (size_t i = 0; i < std::min(found.size(), kMostAnswers); ++i) {
    sets.push_back(std::move(found[i].second));
  }
  return sets;
}

}  // namespace railhead::placement
