// SPDX-License-Identifier: Apache-2.0
//
// How well the groups of a dragonfly are linked for a gang that none of them holds alone.
#ifndef RAILHEAD_PLACEMENT_GROUP_LINKS_H_
#define RAILHEAD_PLACEMENT_GROUP_LINKS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// Of the pairs of groups that send to each other: in a ring those that are neighbours in the order
// of the file, else all.
struct LinkQuality {
  int missing = 0;  // pairs without a link of their own, whose data take a detour
  double slowest_gbps = std::numeric_limits<double>::infinity();

  bool operator==(const LinkQuality&) const = default;
};

bool Better(const LinkQuality& a, const LinkQuality& b);

// `groups` are indices of domains of the outermost level, ascending.
LinkQuality QualityOf(const fabric::FabricModel& model, Pattern pattern,
                      const std::vector<int>& groups);

// Sets of as many groups as `current` has, with room for `pods` together and better linked; best
// first, equals in the order of the file, at most 64. `room` is that of each group, in pods. Empty
// where there are more than 4096 sets of that many groups: to look at all of them takes too long.
std::vector<std::vector<int>> BetterLinkedGroups(const fabric::FabricModel& model, Pattern pattern,
                                                 const std::vector<int64_t>& room, int64_t pods,
                                                 const std::vector<int>& current);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_GROUP_LINKS_H_
