// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/machine_kinds.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

void NumberKinds(std::vector<NodeRails>& nodes) {
  using Names = std::map<size_t, std::string>;  // by rail
  std::map<Names, std::vector<NodeRails*>> same_names;
  for (NodeRails& node : nodes) {
    node.kind = -1;
    Names names;
    for (size_t r = 0; r < node.rails.size(); ++r) {
      if (node.rails[r].there()) names[r] = node.rails[r].nic;
    }
    if (!names.empty() && node.certain) same_names[names].push_back(&node);
  }
  struct SameRails {
    int kind = -1;
    size_t nodes = 0;
  };
  std::map<std::vector<size_t>, SameRails> same_rails;
  int next = 0;
  for (const bool lone : {false, true}) {
    for (auto& [names, members] : same_names) {
      if ((members.size() == 1) != lone) continue;
      std::vector<size_t> rails;
      for (const auto& [rail, name] : names) rails.push_back(rail);
      SameRails& most = same_rails[rails];
      const int kind = lone && most.kind >= 0 ? most.kind : next++;
      for (NodeRails* node : members) node->kind = kind;
      if (members.size() > most.nodes) most = {kind, members.size()};
    }
  }
}

}  // namespace railhead::fabric
