// SPDX-License-Identifier: Apache-2.0
#include "placement/testing/best_fit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/request.h"

namespace railhead::placement::testing {
namespace {

using fabric::FabricModel;

class Greedy {
 public:
  Greedy(const FabricModel& model, const PlacementRequest& request)
      : model_(model), levels_(model.levels.size()), room_(levels_ + 1) {
    for (const fabric::FabricNode& node : model.nodes) {
      room_[levels_].push_back(RoomOnNode(node, request).pods);
    }
    for (size_t level = levels_; level-- > 0;) {
      for (const fabric::FabricDomain& domain : model.domains[level]) {
        const auto first = room_[level + 1].begin() + domain.first;
        room_[level].push_back(std::accumulate(first, first + domain.count, int64_t{0}));
      }
    }
  }

  std::vector<int> Place(int64_t pods) {
    for (size_t level = levels_; level-- > 0;) {
      const int domain = Tightest(level, 0, static_cast<int>(room_[level].size()), pods);
      if (domain < 0) continue;
      Inside(level, domain, pods);
      return Ranks();
    }
    if (std::accumulate(room_[0].begin(), room_[0].end(), int64_t{0}) < pods) return {};
    Among(0, 0, static_cast<int>(room_[0].size()), pods);
    return Ranks();
  }

 private:
  int64_t RoomOf(size_t level, int index) const { return room_[level][static_cast<size_t>(index)]; }

  int Tightest(size_t level, int first, int end, int64_t pods) const {
    int best = -1;
    for (int i = first; i < end; ++i) {
      if (RoomOf(level, i) < pods) continue;
      if (best < 0 || RoomOf(level, i) < RoomOf(level, best)) best = i;
    }
    return best;
  }

  void Inside(size_t level, int index, int64_t pods) {
    if (level == levels_) {
      taken_.emplace_back(index, pods);
      return;
    }
    const fabric::FabricDomain& domain = model_.domains[level][static_cast<size_t>(index)];
    Among(level + 1, domain.first, domain.first + domain.count, pods);
  }

  // Domains, or nodes, first to end - 1 of a level.
  void Among(size_t level, int first, int end, int64_t pods) {
    std::vector<int> order(static_cast<size_t>(end - first));
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return RoomOf(level, a) > RoomOf(level, b); });
    for (size_t i = 0; pods > 0; ++i) {
      int index = order[i];
      if (RoomOf(level, index) >= pods) {  // the last of them: the tightest of those not taken
        for (size_t j = i; j < order.size() && RoomOf(level, order[j]) >= pods; ++j) {
          if (RoomOf(level, order[j]) < RoomOf(level, index)) index = order[j];
        }
      }
      const int64_t here = std::min(RoomOf(level, index), pods);
      Inside(level, index, here);
      pods -= here;
    }
  }

  std::vector<int> Ranks() {
    std::sort(taken_.begin(), taken_.end());
    std::vector<int> ranks;
    for (const auto& [node, pods] : taken_) {
      ranks.insert(ranks.end(), static_cast<size_t>(pods), node);
    }
    return ranks;
  }

  const FabricModel& model_;
  const size_t levels_;
  std::vector<std::vector<int64_t>> room_;  // of each level, and at last of the nodes
  std::vector<std::pair<int, int64_t>> taken_;
};

}  // namespace

std::vector<int> BestFit(const FabricModel& model, const PlacementRequest& request) {
  return Greedy(model, request).Place(request.pods);
}

}  // namespace railhead::placement::testing
