// SPDX-License-Identifier: Apache-2.0
#include "cli/picture.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cli/output/words.h"
#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/score.h"
#include "placement/solver.h"

namespace railhead::cli {
namespace {

using fabric::FabricDomain;
using fabric::FabricModel;
using placement::Placement;
using placement::PlacementRequest;
using placement::Reason;

// A leaf with more nodes is shown without a mark for each.
constexpr int kMostMarks = 64;

// Pods and room of one domain of the tree.
struct Use {
  int64_t pods = 0;  // of this gang
  int64_t room = 0;  // for pods of this gang before its placement
  int first_rank = 0;
};

class Tree {
 public:
  Tree(const FabricModel& model, const PlacementRequest& request, const Placement& placement)
      : model_(model), pods_(model.nodes.size()), rooms_(model.nodes.size()) {
    const std::vector<std::vector<int>> domains = fabric::DomainsOfNodes(model);
    for (const std::vector<FabricDomain>& level : model.domains) use_.emplace_back(level.size());
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      rooms_[i] = placement::RoomOnNode(model.nodes[i], request).pods;
      for (size_t level = 0; level < use_.size(); ++level) {
        At(level, domains[level][i]).room += rooms_[i];
      }
    }
    for (size_t rank = 0; rank < placement.node_of_rank.size(); ++rank) {
      const auto node = static_cast<size_t>(placement.node_of_rank[rank]);
      ++pods_[node];
      for (size_t level = 0; level < use_.size(); ++level) {
        Use& use = At(level, domains[level][node]);
        if (use.pods++ == 0) use.first_rank = static_cast<int>(rank);
      }
    }
  }

  std::string Text() {
    Domains(0, 0, static_cast<int>(model_.domains[0].size()));
    return absl::StrCat(text_,
                        "# node of this job   + node with room left   . node without room\n");
  }

 private:
  Use& At(size_t level, int index) { return use_[level][static_cast<size_t>(index)]; }

  void Domains(size_t level, int first, int end) {
    size_t width = 0;
    int unused = 0;
    for (int i = first; i < end; ++i) {
      if (At(level, i).pods == 0) ++unused;
      if (At(level, i).pods > 0) width = std::max(width, Name(level, i).size());
    }
    const std::string indent(2 * level, ' ');
    for (int i = first; i < end; ++i) {
      const Use& use = At(level, i);
      if (use.pods == 0) continue;
      const FabricDomain& domain = model_.domains[level][static_cast<size_t>(i)];
      const bool innermost = level + 1 == use_.size();
      std::string name = Name(level, i);
      name.resize(width, ' ');
      const auto last_rank = use.first_rank + use.pods - 1;
      absl::StrAppend(&text_, indent, name, "  ", innermost ? Marks(domain) : "", use.pods, " of ",
                      use.room, " free places, rank", use.pods == 1 ? " " : "s ", use.first_rank,
                      use.pods == 1 ? "" : absl::StrCat(" to ", last_rank), "\n");
      if (!innermost) Domains(level + 1, domain.first, domain.first + domain.count);
    }
    if (unused > 0) {
      absl::StrAppend(&text_, indent, "(", Counted(unused, model_.levels[level]), " not used)\n");
    }
  }

  std::string Name(size_t level, int index) const {
    return model_.domains[level][static_cast<size_t>(index)].name;
  }

  std::string Marks(const FabricDomain& leaf) const {
    if (leaf.count > kMostMarks) return "";
    std::string marks = "[";
    for (int i = leaf.first; i < leaf.first + leaf.count; ++i) {
      const auto node = static_cast<size_t>(i);
      marks += pods_[node] > 0 ? '#' : rooms_[node] > 0 ? '+' : '.';
    }
    return marks + "]  ";
  }

  const FabricModel& model_;
  std::vector<std::vector<Use>> use_;  // [level][domain]
  std::vector<int> pods_;              // of each node
  std::vector<int> rooms_;
  std::string text_;
};

std::string Verdict(const Placement& placement) {
  return placement.optimal ? "proven best" : "not proven best: other leaves may cut fewer groups";
}

// Returns the most pods that `count` domains of the outermost level hold together; with sameRails,
// of pods that all get the same rails.
int64_t MostRoom(const FabricModel& model, const PlacementRequest& request, int count) {
  std::map<uint64_t, std::vector<int64_t>> rooms_by_rails;
  const std::vector<int> domain_of_node = fabric::DomainsOfNodes(model)[0];
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const fabric::FabricNode& node = model.nodes[i];
    const uint64_t rails =
        request.same_rails ? placement::RailsOnNode(node, request.hcas_per_pod) : 0;
    std::vector<int64_t>& rooms = rooms_by_rails[rails];
    rooms.resize(model.domains[0].size());
    rooms[static_cast<size_t>(domain_of_node[i])] +=
        request.same_rails ? placement::RoomForSameRails(node, request)
                           : placement::RoomOnNode(node, request).pods;
  }
  int64_t most = 0;
  for (auto& [rails, rooms] : rooms_by_rails) {
    std::sort(rooms.begin(), rooms.end(), std::greater<>());
    rooms.resize(std::min(rooms.size(), static_cast<size_t>(count)));
    most = std::max(most, std::accumulate(rooms.begin(), rooms.end(), int64_t{0}));
  }
  return most;
}

}  // namespace

std::string Picture(const FabricModel& model, const PlacementRequest& request,
                    const Placement& placement, const std::vector<Reason>& reasons) {
  const std::string gang = absl::StrCat(request.name, ": ", Counted(request.pods, "pod"), " of ",
                                        Counted(request.gpus_per_pod, "GPU"), " and ",
                                        Counted(request.hcas_per_pod, "HCA"));
  if (!placement.placed) {
    std::string text = absl::StrCat(gang, ": NOT PLACED on fabric ", model.name, "\n");
    for (const Reason& reason : reasons) {
      absl::StrAppend(&text, reason.kind == Reason::Kind::kChange ? "  -> " : "  ", reason.message,
                      "\n");
    }
    return text;
  }
  std::vector<std::string> used;
  std::vector<std::string> crossings;
  for (size_t level = 0; level < model.levels.size(); ++level) {
    used.push_back(Counted(placement.score.domains[level], model.levels[level]));
    crossings.push_back(
        absl::StrCat(model.levels[level], " ", placement.score.ring_crossings[level]));
  }
  return absl::StrCat(gang, ": placed in ", absl::StrJoin(used, ", "), " of fabric ", model.name,
                      " (", Verdict(placement), ")\n",
                      "ring neighbours in different domains: ", absl::StrJoin(crossings, ", "),
                      "; on different rails: ", placement.score.rail_mismatches, "\n\n",
                      Tree(model, request, placement).Text());
}

std::vector<std::string> Explain(const FabricModel& model, const PlacementRequest& request,
                                 const Placement& placement) {
  std::vector<std::string> lines;
  for (const Reason& reason : placement::Exclusions(model, request)) {
    lines.push_back(reason.message);
  }
  if (!placement.placed) return lines;
  const int outermost = placement.score.domains[0];
  const std::string& level = model.levels[0];
  if (outermost > 1) {
    lines.push_back(absl::StrCat("why ", Counted(outermost, level), ": ", outermost - 1,
                                 " hold at most ", MostRoom(model, request, outermost - 1), " of ",
                                 Counted(request.pods, "pod")));
  } else {
    lines.push_back(absl::StrCat("one ", level, " holds all pods"));
  }
  for (size_t inner = 1; inner < model.levels.size(); ++inner) {
    lines.push_back(absl::StrCat("minimum of ", Plural(model.levels[inner]),
                                 " with this number of ", Plural(model.levels[inner - 1]), ": ",
                                 placement.score.domains[inner]));
  }
  lines.push_back(placement.score.rail_mismatches == 0
                      ? "all ring neighbours get the same rails"
                      : "no placement with this number of domains gives all pods the same rails");
  for (const placement::GroupCuts& group : placement.score.groups) {
    for (size_t i = 0; i < group.cuts.size(); ++i) {
      lines.push_back(absl::StrCat(group.name, " groups are cut ", group.cuts[i],
                                   " times by borders of ", Plural(model.levels[i]),
                                   "; the lower bound is ", group.at_least[i]));
    }
  }
  if (!request.prefer_level.empty()) {
    const auto preferred = static_cast<size_t>(*fabric::LevelIndex(model, request.prefer_level));
    lines.push_back(absl::StrCat("preferLevel ", request.prefer_level,
                                 placement.score.domains[preferred] == 1
                                     ? ": met"
                                     : ": not met: no usable domain of this level holds all pods"));
  }
  return lines;
}

}  // namespace railhead::cli
