// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/place_labels.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/observations.h"

namespace railhead::fabric {
namespace {

constexpr char kKubernetes[] = "Kubernetes";

struct Scheme {
  const char* name;
  std::vector<std::pair<const char*, const char*>> levels;  // name and label, outermost first
};

std::vector<Scheme> Schemes() {
  return {
      {"Railhead",
       {{"core", "topology.railhead.io/core"},
        {"spine", "topology.railhead.io/spine"},
        {"leaf", "topology.railhead.io/leaf"}}},
      // Tier 0 is the one closest to the node.
      {"Topograph",
       {{"tier-3", "fabric.topograph.run/tier-3"},
        {"core", "fabric.topograph.run/tier-2"},
        {"spine", "fabric.topograph.run/tier-1"},
        {"leaf", "fabric.topograph.run/tier-0"}}},
      {"NVIDIA",
       {{"core", "network.topology.nvidia.com/core"},
        {"spine", "network.topology.nvidia.com/spine"},
        {"leaf", "network.topology.nvidia.com/leaf"}}},
      // Layer 3 is the one closest to the instance.
      {"AWS",
       {{"layer-1", "topology.k8s.aws/network-node-layer-1"},
        {"layer-2", "topology.k8s.aws/network-node-layer-2"},
        {"layer-3", "topology.k8s.aws/network-node-layer-3"}}},
      // gce-topology-host is the physical machine of a virtual one, not part of the network.
      {"GKE",
       {{"block", "cloud.google.com/gce-topology-block"},
        {"subblock", "cloud.google.com/gce-topology-subblock"}}},
      {kKubernetes,
       {{"region", "topology.kubernetes.io/region"}, {"zone", "topology.kubernetes.io/zone"}}},
  };
}

}  // namespace

std::vector<SeenPlace> PlacesOf(const std::map<std::string, std::string>& labels) {
  std::vector<SeenPlace> places;
  for (const Scheme& scheme : Schemes()) {
    SeenPlace place;
    place.scheme = scheme.name;
    for (const auto& [level, label] : scheme.levels) {
      const auto found = labels.find(label);
      if (found != labels.end() && !found->second.empty()) {
        place.levels.emplace_back(level, found->second);
      }
    }
    if (!place.levels.empty()) places.push_back(std::move(place));
  }
  return places;
}

bool TellsOfNetwork(const std::string& scheme) { return scheme != kKubernetes; }

std::vector<std::string> SchemeNames() {
  std::vector<std::string> names;
  for (const Scheme& scheme : Schemes()) names.emplace_back(scheme.name);
  return names;
}

std::vector<std::string> LevelNames(const std::string& scheme) {
  std::vector<std::string> names;
  for (const Scheme& known : Schemes()) {
    if (known.name != scheme) continue;
    for (const auto& [level, label] : known.levels) names.emplace_back(level);
  }
  return names;
}

}  // namespace railhead::fabric
