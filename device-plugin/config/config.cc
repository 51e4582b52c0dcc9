// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/config.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/selector.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

bool IsNamedBy(const RailEntry& entry, const fabric::Hca& hca) {
  return (!entry.interface.empty() && entry.interface == hca.netdev) ||
         (!entry.pci_address.empty() && entry.pci_address == hca.pci_address) ||
         (!entry.name.empty() && entry.name == hca.name);
}

// Returns the number not in `reserved` that has exactly `place` smaller such numbers.
int NthFree(const std::set<int>& reserved, int place) {
  int number = place;
  for (const int taken : reserved) {
    if (taken <= number) ++number;
  }
  return number;
}

}  // namespace

std::vector<std::string> GpuVendors(const AgentConfig& config) {
  std::vector<std::string> vendors = fabric::DefaultGpuVendors();
  vendors.insert(vendors.end(), config.gpu_vendors.begin(), config.gpu_vendors.end());
  return vendors;
}

std::string OfferedName(const ResourceConfig& resource, int rail) {
  return resource.per_rail ? absl::StrCat(resource.name, "-", rail) : resource.name;
}

bool IsChosen(const AgentConfig& config, const fabric::Hca& hca) {
  const auto chooses = [&hca](Selector selector) {
    const auto names = [&selector](absl::string_view role) {
      return std::find(selector.roles.begin(), selector.roles.end(), role) != selector.roles.end();
    };
    if (selector.roles.empty() || names("pf") || names("bond")) return false;
    selector.rails.clear();  // it has no number yet
    return Matches(selector, hca);
  };
  return std::any_of(
      config.resources.begin(), config.resources.end(), [&chooses](const ResourceConfig& resource) {
        return std::any_of(resource.selectors.begin(), resource.selectors.end(), chooses);
      });
}

std::vector<std::vector<size_t>> ShareOut(const AgentConfig& config,
                                          const std::vector<fabric::Hca>& hcas) {
  std::vector<std::vector<size_t>> shares(config.resources.size());
  const auto without_selectors =
      std::find_if(config.resources.begin(), config.resources.end(),
                   [](const ResourceConfig& resource) { return resource.selectors.empty(); });
  for (size_t i = 0; i < hcas.size(); ++i) {
    if (!hcas[i].offered) continue;
    auto owner =
        std::find_if(config.resources.begin(), config.resources.end(),
                     [&hca = hcas[i]](const ResourceConfig& resource) {
                       return std::any_of(resource.selectors.begin(), resource.selectors.end(),
                                          [&hca](const Selector& s) { return Matches(s, hca); });
                     });
    if (owner == config.resources.end()) owner = without_selectors;
    if (owner == config.resources.end()) continue;
    shares[static_cast<size_t>(owner - config.resources.begin())].push_back(i);
  }
  return shares;
}

void ApplyRails(const std::vector<RailEntry>& entries, std::vector<fabric::Hca>& hcas) {
  // The other HCAs close the gaps that entries leave.
  std::set<int> vacant;
  std::set<int> reserved;
  std::set<const fabric::Hca*> named;
  for (const RailEntry& entry : entries) {
    reserved.insert(entry.rail);
    const auto first = std::find_if(hcas.begin(), hcas.end(), [&entry](const fabric::Hca& hca) {
      return hca.offered && IsNamedBy(entry, hca);
    });
    if (first == hcas.end() || !named.insert(&*first).second) continue;
    vacant.insert(first->rail);
    first->rail = entry.rail;
  }
  for (fabric::Hca& hca : hcas) {
    if (!hca.offered || named.contains(&hca)) continue;
    const int place =
        hca.rail - static_cast<int>(std::distance(vacant.begin(), vacant.lower_bound(hca.rail)));
    hca.rail = NthFree(reserved, place);
  }
  fabric::LimitRails(hcas);
  std::stable_sort(hcas.begin(), hcas.end(), [](const fabric::Hca& a, const fabric::Hca& b) {
    if (a.offered != b.offered) return a.offered;
    return a.rail < b.rail;
  });
}

}  // namespace railhead::device_plugin
