// SPDX-License-Identifier: Apache-2.0
#include "fabric/testing/built_fabric.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {
namespace {

using Json = nlohmann::ordered_json;

int Pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

struct Cord {
  std::string host;  // or a switch
  int rail = -1;     // the number of a host's NIC
  std::string at;
};

std::vector<Cord> Cords(const BuiltFabric& fabric) {
  std::vector<Cord> cords;
  for (const BuiltNode& node : fabric.nodes) {
    for (size_t rail = 0; rail < node.switches.size(); ++rail) {
      if (node.switches[rail].empty()) continue;
      cords.push_back({node.name, node.nics[rail], node.switches[rail]});
    }
  }
  for (const auto& [a, b] : fabric.uplinks) cords.push_back({a, -1, b});
  return cords;
}

}  // namespace

BuiltFabric RandomFabric(std::mt19937& random) {
  BuiltFabric built;
  FabricModel& model = built.model;
  model.name = "built";
  const int pods = Pick(random, 1, 3);
  const int leaves = Pick(random, 2, 4);
  const int spines = Pick(random, 1, 3);
  const int cores = Pick(random, 1, 2);
  const bool rail_optimized = Pick(random, 0, 1) == 1;
  model.rails = Pick(random, rail_optimized ? 2 : 1, 8);
  model.topology = rail_optimized ? FabricTopology::kRailOptimized : FabricTopology::kFatTree;
  model.levels = {"spine", "leaf"};
  if (pods > 1) model.levels.insert(model.levels.begin(), "core");
  model.domains.resize(model.levels.size());
  std::vector<FabricDomain>& spine_domains = model.domains[model.levels.size() - 2];
  if (pods > 1) model.domains[0].push_back({"c0", -1, 0, pods});
  for (int p = 0; p < pods; ++p) {
    spine_domains.push_back({absl::StrCat("p", p, "s0"), pods > 1 ? 0 : -1, p * leaves, leaves});
    for (int s = 0; pods > 1 && s < spines; ++s) {
      for (int c = 0; c < cores; ++c) {
        built.uplinks.emplace_back(absl::StrCat("p", p, "s", s), absl::StrCat("c", c));
      }
    }
    for (int l = 0; l < leaves; ++l) {
      const std::string leaf = absl::StrCat("p", p, "l", l, "r");
      const int count = Pick(random, 3, 6);
      model.domains.back().push_back(
          {rail_optimized ? leaf : leaf + "0", p, static_cast<int>(model.nodes.size()), count});
      for (int r = 0; r < (rail_optimized ? model.rails : 1); ++r) {
        for (int s = 0; s < spines; ++s) {
          built.uplinks.emplace_back(absl::StrCat(leaf, r), absl::StrCat("p", p, "s", s));
        }
      }
      const int lame = Pick(random, 0, 2 * count);
      for (int n = 0; n < count; ++n) {
        FabricNode node;
        node.name = absl::StrCat("n", model.nodes.size());
        node.gpus = 8;
        node.hcas = model.rails;
        if (n == lame && model.rails > 2) node.dead_rails = {Pick(random, 0, model.rails - 1)};
        BuiltNode cables = {node.name, {}, {}};
        for (int r = 0; r < model.rails; ++r) {
          const bool dead = !node.dead_rails.empty() && node.dead_rails[0] == r;
          cables.nics.push_back(r);
          cables.switches.push_back(dead ? "" : absl::StrCat(leaf, rail_optimized ? r : 0));
        }
        built.nodes.push_back(std::move(cables));
        model.nodes.push_back(std::move(node));
      }
    }
  }
  return built;
}

void AddSmallerKind(BuiltFabric& fabric, std::mt19937& random) {
  const auto rails = static_cast<size_t>(fabric.model.rails);
  if (rails < 4) return;
  std::vector<size_t> places(rails);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random);
  places.resize(rails / 2);
  std::sort(places.begin(), places.end());
  std::vector<size_t> chosen;
  for (const FabricDomain& leaf : fabric.model.domains.back()) {
    for (int n = leaf.first + 3; n < leaf.first + leaf.count; ++n) {
      const bool dead = !fabric.model.nodes[static_cast<size_t>(n)].dead_rails.empty();
      if (!dead && Pick(random, 0, 1) == 1) chosen.push_back(static_cast<size_t>(n));
    }
  }
  if (chosen.size() < 3) return;  // who is alone is of no kind
  for (const size_t n : chosen) {
    BuiltNode smaller = {fabric.nodes[n].name, {}, {}};
    for (const size_t place : places) {
      smaller.nics.push_back(static_cast<int>(smaller.nics.size()));
      smaller.switches.push_back(fabric.nodes[n].switches[place]);
    }
    fabric.model.nodes[n].hcas = static_cast<int>(places.size());
    fabric.nodes[n] = std::move(smaller);
  }
}

void RenameNics(BuiltFabric& fabric, std::mt19937& random) {
  std::map<size_t, std::vector<int>> orders;  // by the number of NICs
  for (BuiltNode& node : fabric.nodes) {
    std::vector<int>& order = orders[node.nics.size()];
    if (order.empty()) {
      order = node.nics;
      std::shuffle(order.begin(), order.end(), random);
    }
    node.nics = order;
  }
}

std::string AsIbnetdiscover(const BuiltFabric& fabric, std::mt19937& random) {
  std::map<std::string, std::string> sections;  // by id
  std::map<std::string, int> ports;
  const auto id_of = [](const Cord& cord, bool far) {
    if (far) return absl::StrCat("S-", cord.at);
    return cord.rail < 0 ? absl::StrCat("S-", cord.host)
                         : absl::StrCat("H-", cord.host, "-", cord.rail);
  };
  for (const Cord& cord : Cords(fabric)) {
    const std::string near = id_of(cord, false);
    const std::string far = id_of(cord, true);
    const int near_port = ++ports[near];
    const int far_port = ++ports[far];
    for (const auto& [id, name] : {std::pair(near, cord.host), {far, cord.at}}) {
      if (sections.count(id) > 0) continue;
      sections[id] = id[0] == 'S' ? absl::StrCat("switchguid=0x1(1)\nSwitch\t64 \"", id,
                                                 "\"\t\t# \"", name, "\" base port 0 lid 0 lmc 0\n")
                                  : absl::StrCat("caguid=0x1\nCa\t1 \"", id, "\"\t\t# \"", name,
                                                 " mlx5_", cord.rail, "\"\n");
    }
    sections[near] +=
        absl::StrCat("[", near_port, "]\t\"", far, "\"[", far_port, "]\t\t# \"x\" lid 0 4xNDR\n");
    sections[far] += absl::StrCat("[", far_port, "]\t\"", near, "\"[", near_port,
                                  "](1) \t\t# \"x\" lid 0 4xNDR\n");
  }
  std::vector<std::string> texts;
  for (const auto& [id, text] : sections) texts.push_back(text);
  std::shuffle(texts.begin(), texts.end(), random);
  std::string all = "#\n# Topology file: generated\n#\n";
  for (const std::string& text : texts) absl::StrAppend(&all, "\n", text);
  return all;
}

std::vector<std::string> AsLldp(const BuiltFabric& fabric, std::mt19937& random) {
  std::map<std::string, Json> neighbours;  // json0, by speaker
  std::map<std::string, int> ports;
  std::set<std::string> hosts;
  for (const BuiltNode& node : fabric.nodes) {
    hosts.insert(node.name);
    neighbours[node.name] = Json::array();
  }
  const auto chassis = [&](const std::string& name) {
    return Json::array(
        {{{"id", {{{"type", "mac"}, {"value", "mac of " + name}}}},
          {"name", {{{"value", name}}}},
          {"capability", {{{"type", "Router"}, {"enabled", hosts.count(name) == 0}}}}}});
  };
  for (const Cord& cord : Cords(fabric)) {
    const std::string near =
        cord.rail < 0 ? absl::StrCat("up", ++ports[cord.host]) : absl::StrCat("eth", cord.rail);
    const std::string far = absl::StrCat("swp", ++ports[cord.at]);
    const auto told = [&](const std::string& speaker, const std::string& interface,
                          const std::string& other, const std::string& port) {
      neighbours[speaker].push_back(
          {{"name", interface},
           {"via", "LLDP"},
           {"chassis", chassis(other)},
           {"port", {{{"id", {{{"type", "ifname"}, {"value", port}}}}}}}});
    };
    told(cord.host, near, cord.at, far);
    told(cord.at, far, cord.host, near);
  }
  std::vector<std::string> texts;
  for (auto& [speaker, list] : neighbours) {
    const Json local = {{"local-chassis", {{{"chassis", chassis(speaker)}}}}};
    std::shuffle(list.begin(), list.end(), random);
    const Json lldp = {{"lldp", {{{"interface", list}}}}};
    texts.push_back(absl::StrCat(local.dump(), "\n", lldp.dump(), "\n"));
  }
  std::shuffle(texts.begin(), texts.end(), random);
  return texts;
}

std::string AsKubernetes(const BuiltFabric& fabric, bool labels, std::mt19937& random,
                         bool silent) {
  const std::vector<std::vector<int>> domains = DomainsOfNodes(fabric.model);
  std::vector<Json> items;
  for (size_t n = 0; n < fabric.nodes.size(); ++n) {
    const FabricNode& node = fabric.model.nodes[n];
    Json rails = Json::array();
    for (int r = 0; r < node.hcas; ++r) {
      const int nic = fabric.nodes[n].nics[static_cast<size_t>(r)];
      const bool dead = std::count(node.dead_rails.begin(), node.dead_rails.end(), r) > 0;
      rails.push_back({{"rail", r},
                       {"device", absl::StrCat("mlx5_", nic)},
                       {"netdev", absl::StrCat("eth", nic)},
                       {"rateGbps", 400},
                       {"usable", !dead},
                       {"reason", dead ? "port 1 is DOWN" : ""}});
    }
    const Json facts = {{"version", 1}, {"rails", rails}, {"gpus", Json::array()}};
    Json item = {{"kind", "Node"},
                 {"metadata",
                  {{"name", node.name},
                   {"labels", Json::object()},
                   {"annotations", {{"railhead.io/node-facts", facts.dump()}}}}},
                 {"status", {{"allocatable", {{"nvidia.com/gpu", "8"}}}}}};
    const int leaf = domains.back()[n];
    const int first = fabric.model.domains.back()[static_cast<size_t>(leaf)].first;
    if (silent && static_cast<int>(n) >= first + 3 && Pick(random, 0, 1) == 1) {
      item["metadata"].erase("annotations");
    }
    for (size_t level = 0; labels && level < domains.size(); ++level) {
      const size_t tier = domains.size() - 1 - level;
      item["metadata"]["labels"][absl::StrCat("fabric.topograph.run/tier-", tier)] =
          fabric.model.domains[level][static_cast<size_t>(domains[level][n])].name;
    }
    items.push_back(item);
  }
  std::shuffle(items.begin(), items.end(), random);
  return Json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}).dump(1);
}

}  // namespace railhead::fabric
