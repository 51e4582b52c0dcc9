// SPDX-License-Identifier: Apache-2.0
//
// Enumerations of collectives and algorithms, with their names in metrics, messages and settings.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_COLLECTIVE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_COLLECTIVE_H_

#include <array>
#include <cstddef>

namespace railhead::collectives {

enum class Collective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kBarrier,
  kAllToAll,
  kGather,
  kScatter,
  kSendReceive
};
inline constexpr std::array<const char*, 10> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
    "barrier",    "all_to_all", "gather",         "scatter",   "send_receive"};
inline const char* Name(Collective collective) {
  return kCollectiveNames[static_cast<size_t>(collective)];
}
inline bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}
inline bool HasRoot(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

enum class Algorithm {
  kSharedMemory,  // shm/group.h
  kRing,
  kRecursiveDoubling,
  kHalvingDoubling,
  kDoubleTree,
  kBinomial,
  kPairwise,
  kBruck,
  kDirect,
  kHierarchical,  // comm/hierarchy.h
  kRecursiveHalving,
  kScatterAllGather
};
inline constexpr std::array<const char*, 12> kAlgorithmNames = {
    "shared_memory", "ring",         "recursive_doubling", "halving_doubling",
    "double_tree",   "binomial",     "pairwise",           "bruck",
    "direct",        "hierarchical", "recursive_halving",  "scatter_allgather"};
inline const char* Name(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<size_t>(algorithm)];
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_COLLECTIVE_H_
