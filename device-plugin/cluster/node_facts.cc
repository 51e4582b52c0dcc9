// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_facts.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/affinity.h"
#include "fabric/gid_table.h"
#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"
#include "fabric/node_facts/writer.h"

namespace railhead::device_plugin {
namespace {

// Keeps the message readable.
constexpr size_t kMaxRailsInMessage = 4;

std::map<std::string, std::string> Labels(const std::vector<const fabric::Hca*>& rails,
                                          const fabric::NodeInventory& inventory,
                                          const HostFacts& host) {
  std::map<std::string, std::string> labels;
  labels["railhead.io/rails"] = absl::StrCat(rails.size());
  std::set<std::string> layers;
  double slowest = 0;
  for (const fabric::Hca* hca : rails) {
    const fabric::HcaPort* port = fabric::DataPort(*hca);
    if (port == nullptr) continue;
    if (!port->link_layer.empty()) layers.insert(port->link_layer);
    // A port that is down reports the rate that it failed to keep.
    if (!hca->health.usable() || port->rate_gbps <= 0) continue;
    slowest = slowest == 0 ? port->rate_gbps : std::min(slowest, port->rate_gbps);
  }
  if (!layers.empty()) {
    labels["railhead.io/link-layer"] = layers.size() == 1 ? *layers.begin() : "mixed";
  }
  if (slowest > 0) labels["railhead.io/rate-gbps"] = absl::StrCat(slowest);
  labels["railhead.io/gpus"] = absl::StrCat(inventory.gpus.size());
  if (host.gpu_direct.has_value()) {
    labels["railhead.io/gpudirect"] = std::string(ToString(WayOf(*host.gpu_direct)));
  }
  labels["railhead.io/memlock-bytes"] =
      host.memlock_bytes.has_value() ? absl::StrCat(*host.memlock_bytes) : "unlimited";
  return labels;
}

RailsCondition Condition(const std::vector<const fabric::Hca*>& rails) {
  std::vector<std::string> down;
  for (const fabric::Hca* hca : rails) {
    if (!hca->health.usable()) {
      down.push_back(absl::StrCat("rail ", hca->rail, " (", hca->name, "): ", hca->health.Text()));
    }
  }
  if (down.empty()) {
    return {true, "AllRailsUp", absl::StrCat("all ", rails.size(), " rails carry data")};
  }
  const std::string count =
      absl::StrCat(rails.size() - down.size(), " of ", rails.size(), " rails carry data; ");
  const size_t unnamed = down.size() - std::min(down.size(), kMaxRailsInMessage);
  down.resize(down.size() - unnamed);
  return {false, "RailsDown",
          absl::StrCat(count, absl::StrJoin(down, "; "),
                       unnamed == 0 ? "" : absl::StrCat("; and ", unnamed, " more"))};
}

}  // namespace

NodeFacts DescribeNode(const fabric::NodeInventory& inventory, const HostFacts& host) {
  std::vector<const fabric::Hca*> rails;
  for (const fabric::Hca& hca : inventory.hcas) {
    if (hca.offered) rails.push_back(&hca);
  }
  if (rails.empty()) return {};
  // If all or none are in use, free and used rails need no distinction.
  const bool some_free = std::any_of(rails.begin(), rails.end(), [&](const fabric::Hca* hca) {
    return hca->health.usable() && !host.rails_in_use.contains(hca->rail);
  });
  return {Labels(rails, inventory, host), fabric::WriteNodeFacts(inventory, host),
          some_free ? absl::StrJoin(host.rails_in_use, ",") : "", Condition(rails)};
}

}  // namespace railhead::device_plugin
