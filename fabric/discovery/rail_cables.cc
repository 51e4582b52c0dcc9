// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/rail_cables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {
namespace {

// "mlx5_0" of "mlx5_0:2".
std::string HcaOf(const std::string& nic) { return nic.substr(0, nic.find(':')); }

std::string PortOf(const SeenRail& rail) {
  return rail.port > 1 ? absl::StrCat(rail.device, ":", rail.port) : rail.device;
}

}  // namespace

std::vector<std::vector<std::string>> NicsOfRails(const std::vector<SeenRail>& facts,
                                                  const Nics& nics) {
  std::map<std::string, std::vector<std::string>> ports;  // by HCA, in natural order
  for (const auto& [name, cable] : nics) ports[HcaOf(name)].push_back(name);
  std::set<std::string> taken;  // by the rail that names it
  for (const SeenRail& rail : facts) taken.insert(PortOf(rail));
  std::vector<std::vector<std::string>> of_rails;
  for (const SeenRail& rail : facts) {
    std::vector<std::string>& of_rail = of_rails.emplace_back();
    const auto add = [&](const std::string& name) {
      const bool known = std::count(of_rail.begin(), of_rail.end(), name) > 0;
      if (!known && nics.count(name) > 0) of_rail.push_back(name);
    };
    add(PortOf(rail));
    for (const std::string& name : ports[rail.device]) {
      if (taken.count(name) == 0) add(name);
    }
    add(rail.netdev);
    for (const std::string& slave : rail.slaves) add(slave);
  }
  return of_rails;
}

Nics OneForEachHca(const Nics& nics) {
  Nics one;
  for (const auto& [name, cable] : nics) one.emplace(HcaOf(name), cable);
  return one;
}

}  // namespace railhead::fabric
