// SPDX-License-Identifier: Apache-2.0
#include "cli/topology_summary.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/output/words.h"
#include "fabric/discovery/fusion.h"
#include "fabric/model/fabric_model.h"

namespace railhead::cli {

Summary Summarize(const fabric::DiscoveredFabric& found, int first, int count) {
  Summary sum;
  sum.nodes = count;
  for (int i = first; i < first + count; ++i) {
    const auto index = static_cast<size_t>(i);
    const fabric::FabricNode& node = found.model.nodes[index];
    sum.gpus += node.gpus;
    sum.used_gpus += node.used_gpus;
    sum.hcas += node.hcas;
    const int dead = static_cast<int>(node.dead_rails.size());
    sum.free_hcas += std::max(0, node.hcas - dead - node.used_hcas);
    sum.dead += dead;
    if (!node.unschedulable.empty()) ++sum.unschedulable;
    for (const fabric::RailWire& wire : found.wires[index]) {
      if (wire.miswired) ++sum.miswired;
    }
  }
  return sum;
}

NodeRange NodesOf(const fabric::FabricModel& model, size_t level, size_t domain) {
  int first = static_cast<int>(domain);
  int end = first + 1;
  for (; level < model.levels.size(); ++level) {
    if (first == end) return {};
    const fabric::FabricDomain& last = model.domains[level][static_cast<size_t>(end - 1)];
    first = model.domains[level][static_cast<size_t>(first)].first;
    end = last.first + last.count;
  }
  return {first, end - first};
}

std::string SummaryText(const Summary& sum) {
  std::string text = Counted(sum.nodes, "node");
  if (sum.gpus > 0) {
    absl::StrAppend(&text, ", ", sum.gpus - sum.used_gpus, " of ", sum.gpus, " GPUs free");
  }
  absl::StrAppend(&text, ", ", sum.free_hcas, " of ", sum.hcas, " HCAs free");
  if (sum.dead > 0) absl::StrAppend(&text, ", ", Counted(sum.dead, "dead rail"));
  if (sum.miswired > 0) absl::StrAppend(&text, ", ", Counted(sum.miswired, "wrong cable"));
  if (sum.unschedulable > 0) absl::StrAppend(&text, ", ", sum.unschedulable, " not schedulable");
  return text;
}

}  // namespace railhead::cli
