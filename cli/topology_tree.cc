// SPDX-License-Identifier: Apache-2.0
#include "cli/topology_tree.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/words.h"
#include "cli/topology_summary.h"
#include "fabric/discovery/fusion.h"
#include "fabric/model/fabric_model.h"

namespace railhead::cli {
namespace {

constexpr size_t kMostTreeNodes = 64;
constexpr size_t kMostLeaves = 128;
constexpr size_t kMostTreeSwitches = 4;

class FabricTree {
 public:
  explicit FabricTree(const fabric::DiscoveredFabric& found)
      : found_(found),
        model_(found.model),
        fold_nodes_(model_.nodes.size() > kMostTreeNodes),
        fold_leaves_(model_.domains.back().size() > kMostLeaves) {
    for (const fabric::FabricNode& node : model_.nodes) {
      width_ = std::max(width_, node.name.size());
    }
  }

  std::string Text() {
    const auto count = static_cast<int>(model_.nodes.size());
    text_ = absl::StrCat("fabric ", model_.name, ": ", fabric::TopologyName(model_.topology), ", ",
                         Counted(model_.rails, "rail"), ", ");
    for (size_t level = 0; level < model_.levels.size(); ++level) {
      absl::StrAppend(&text_,
                      Counted(static_cast<int>(model_.domains[level].size()), model_.levels[level]),
                      ", ");
    }
    absl::StrAppend(&text_, SummaryText(Summarize(found_, 0, count)), "\n\n");
    Domains(0, 0, static_cast<int>(model_.domains[0].size()));
    absl::StrAppend(&text_, "rails: | up   x dead   ! cable at the wrong switch   . no NIC\n");
    return text_;
  }

 private:
  void Domains(size_t level, int first, int end) {
    const bool innermost = level + 1 == model_.levels.size();
    const std::string indent(2 * level, ' ');
    int folded = 0;
    for (int i = first; i < end; ++i) {
      const auto index = static_cast<size_t>(i);
      const NodeRange nodes = NodesOf(model_, level, index);
      const Summary summary = Summarize(found_, nodes.first, nodes.count);
      if (innermost && fold_leaves_ && !summary.Trouble()) {
        ++folded;
        continue;
      }
      const fabric::FabricDomain& domain = model_.domains[level][index];
      absl::StrAppend(&text_, indent, model_.levels[level], " ", domain.name, "  ",
                      SummaryText(summary), Switches(level, index), "\n");
      if (innermost) {
        Nodes(domain, indent + "  ");
      } else {
        Domains(level + 1, domain.first, domain.first + domain.count);
      }
    }
    if (folded > 0) {
      absl::StrAppend(&text_, indent, "(", Counted(folded, model_.levels[level]),
                      " without trouble)\n");
    }
  }

  std::string Switches(size_t level, size_t domain) const {
    if (found_.switches.empty()) return "";
    std::vector<std::string> names;
    for (const std::string& name : found_.switches[level][domain]) {
      if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
    }
    if (names.empty()) return "";
    if (names.size() == 1 && names[0] == model_.domains[level][domain].name) return "";
    if (names.size() > kMostTreeSwitches) {
      return absl::StrCat("  [", names.front(), " to ", names.back(), "]");
    }
    return absl::StrCat("  [", absl::StrJoin(names, " "), "]");
  }

  void Nodes(const fabric::FabricDomain& leaf, const std::string& indent) {
    int folded = 0;
    for (int i = leaf.first; i < leaf.first + leaf.count; ++i) {
      if (fold_nodes_ && !Summarize(found_, i, 1).Trouble()) {
        ++folded;
      } else {
        Node(static_cast<size_t>(i), indent);
      }
    }
    if (folded > 0) {
      absl::StrAppend(&text_, indent, "(", Counted(folded, "node"), " without trouble)\n");
    }
  }

  void Node(size_t index, const std::string& indent) {
    const fabric::FabricNode& node = model_.nodes[index];
    std::string rails(static_cast<size_t>(model_.rails), '.');
    for (const fabric::RailWire& wire : found_.wires[index]) {
      rails[static_cast<size_t>(wire.rail)] = wire.dead ? 'x' : wire.miswired ? '!' : '|';
    }
    std::string name = node.name;
    name.resize(width_, ' ');
    absl::StrAppend(&text_, indent, name, "  ", rails);
    if (node.gpus > 0) {
      absl::StrAppend(&text_, "  ", node.gpus - node.used_gpus, " of ", node.gpus, " GPUs free");
    }
    if (!node.unschedulable.empty()) absl::StrAppend(&text_, "  ", node.unschedulable);
    text_ += '\n';
  }

  const fabric::DiscoveredFabric& found_;
  const fabric::FabricModel& model_;
  const bool fold_nodes_;
  const bool fold_leaves_;
  size_t width_ = 0;
  std::string text_;
};

}  // namespace

std::string TopologyTree(const fabric::DiscoveredFabric& found) { return FabricTree(found).Text(); }

}  // namespace railhead::cli
