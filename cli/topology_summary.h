// SPDX-License-Identifier: Apache-2.0
//
// Numbers that summarize part of a fabric.
#ifndef RAILHEAD_CLI_TOPOLOGY_SUMMARY_H_
#define RAILHEAD_CLI_TOPOLOGY_SUMMARY_H_

#include <cstddef>
#include <string>

#include "fabric/discovery/fusion.h"

namespace railhead::cli {

struct Summary {
  int nodes = 0;
  int gpus = 0;
  int used_gpus = 0;
  int hcas = 0;
  int free_hcas = 0;  // neither dead nor used
  int dead = 0;
  int miswired = 0;
  int unschedulable = 0;

  bool Trouble() const { return dead + miswired + unschedulable > 0; }
};

// Counts `count` nodes from index `first` on.
Summary Summarize(const fabric::DiscoveredFabric& found, int first, int count);

// Indices of a domain's nodes, which are contiguous.
struct NodeRange {
  int first = 0;
  int count = 0;
};
NodeRange NodesOf(const fabric::FabricModel& model, size_t level, size_t domain);

// Returns "4 nodes, 24 of 32 GPUs free, 30 of 32 HCAs free, 1 dead rail".
std::string SummaryText(const Summary& summary);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_SUMMARY_H_
