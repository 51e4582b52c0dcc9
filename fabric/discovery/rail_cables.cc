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
#include "fabric/natural_order.h"

namespace railhead::fabric {
namespace {

std::string PortOf(const SeenRail& rail) {
  return rail.port > 1 ? absl::StrCat(rail.device, ":", rail.port) : rail.device;
}

}  // namespace

std::string HcaOf(const std::string& nic) { return nic.substr(0, nic.find(':')); }

std::vector<RailNics> NicsOfRails(absl::Span<const SeenRail> facts, const Nics& nics) {
  std::map<std::string, std::vector<std::string>> ports;  // by HCA, in natural order
  for (const auto& [name, cable] : nics) ports[HcaOf(name)].push_back(name);
  std::set<std::string> taken;  // by the rail that names it
  for (const SeenRail& rail : facts) taken.insert(PortOf(rail));
  std::vector<RailNics> of_rails;
  for (const SeenRail& rail : facts) {
    RailNics& of_rail = of_rails.emplace_back();
    std::set<std::string> known;
    const auto add = [&](const std::string& name, std::vector<std::string>& to) {
      if (nics.count(name) > 0 && known.insert(name).second) to.push_back(name);
    };
    add(PortOf(rail), of_rail.data);
    add(rail.netdev, of_rail.data.empty() ? of_rail.data : of_rail.spare);
    std::vector<std::string> slaves = rail.slaves;  // as the kernel lists them, in any order
    std::sort(slaves.begin(), slaves.end(), NaturalLess);
    for (const std::string& slave : slaves) add(slave, of_rail.data);
    for (const std::string& name : ports[rail.device]) {
      if (taken.count(name) == 0) add(name, of_rail.spare);
    }
  }
  return of_rails;
}

Nics OneForEachHca(const Nics& nics) {
  Nics one;
  for (const auto& [name, cable] : nics) one.emplace(HcaOf(name), cable);
  return one;
}

}  // namespace railhead::fabric
