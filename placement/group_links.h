// SPDX-License-Identifier: Apache-2.0
//
// Link quality of dragonfly groups, for a gang that needs more than one group.
#ifndef RAILHEAD_PLACEMENT_GROUP_LINKS_H_
#define RAILHEAD_PLACEMENT_GROUP_LINKS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// Quality of the links between pairs of groups that exchange data. In a ring, these are neighbours
// in the order of the file; in other patterns, all pairs.
struct LinkQuality {
  int missing = 0;  // pairs without a direct link, so that their data take a detour
  double slowest_gbps = std::numeric_limits<double>::infinity();

  bool operator==(const LinkQuality&) const = default;
};

bool Better(const LinkQuality& a, const LinkQuality& b);

// `groups`: indices of domains of the outermost level, ascending.
LinkQuality QualityOf(const fabric::FabricModel& model, Pattern pattern,
                      const std::vector<int>& groups);

// Returns better linked sets with the same number of groups as `current` and room for `pods` in
// total. Best first, ties in the order of the file; at most 64 sets. `room`: pods that fit in each
// group. Empty if there are more than 4096 sets of that size, because comparing them takes too
// long.
std::vector<std::vector<int>> BetterLinkedGroups(const fabric::FabricModel& model, Pattern pattern,
                                                 const std::vector<int64_t>& room, int64_t pods,
                                                 const std::vector<int>& current);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_GROUP_LINKS_H_
