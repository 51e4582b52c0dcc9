// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/plan_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace railhead::op::gangs {

using fabric::FabricModel;
using placement::PlacementRequest;

std::string NameOf(const Gang& gang, const std::vector<Assignment>& assignments) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const Assignment& assignment : assignments) {
    for (const char c : absl::StrCat(assignment.pod->uid, "=", assignment.node, "\n")) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return absl::StrFormat("%s-%016x", gang.name, hash);
}

std::string WherePlaced(const FabricModel& model, const std::vector<int>& node_of_rank,
                        const placement::Score& score) {
  std::vector<std::string> parts;
  parts.reserve(model.levels.size());
  for (size_t level = 0; level < model.levels.size(); ++level) {
    parts.push_back(absl::StrCat(model.levels[level], " ", score.domains[level]));
  }
  const std::set<int> nodes(node_of_rank.begin(), node_of_rank.end());
  return absl::StrCat(node_of_rank.size(), node_of_rank.size() == 1 ? " pod" : " pods", " on ",
                      nodes.size(), nodes.size() == 1 ? " node" : " nodes",
                      "; domains used: ", absl::StrJoin(parts, ", "));
}

std::string InWords(const std::vector<placement::Reason>& reasons,
                    const std::vector<std::string>& notes) {
  std::vector<std::string> said;
  for (const placement::Reason::Kind kind :
       {placement::Reason::Kind::kRoom, placement::Reason::Kind::kChange,
        placement::Reason::Kind::kExcluded}) {
    for (const placement::Reason& reason : reasons) {
      if (reason.kind == kind) said.push_back(reason.message);
    }
    if (kind == placement::Reason::Kind::kChange) {
      said.insert(said.end(), notes.begin(), notes.end());
    }
  }
  return absl::StrJoin(said, "; ");
}

std::string AboutOtherRails(const FabricModel& model, const PlacementRequest& request,
                            const std::vector<int>& node_of_rank) {
  std::map<uint64_t, int> pods_of_rails;
  int most = 0;
  for (const uint64_t rails : placement::RailsOfRanks(model, request, node_of_rank)) {
    most = std::max(most, ++pods_of_rails[rails]);
  }
  const int off = static_cast<int>(node_of_rank.size()) - most;
  if (off == 0) return "";
  return absl::StrCat(
      "; ", off, off == 1 ? " pod is" : " pods are",
      " given other rails than the rest, whose rails are in use or dead on its node");
}

}  // namespace railhead::op::gangs
