// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/late_binding.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/devices/device_list.h"
#include "device-plugin/grant/preference.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

// Returns the HCAs that the container can get, each as one device with its id.
DeviceSnapshot Eligible(const DeviceSnapshot& snapshot, const BindingWish& wish) {
  std::map<std::string, int64_t> slots;
  for (const Device& device : snapshot.devices) {
    const std::string whole = WithoutSlot(device.id);
    if (!whole.empty() && device.hca.health.usable()) ++slots[whole];
  }
  std::set<std::string> own;
  for (const auto& [named, hca] : wish.now) own.insert({named, hca});
  DeviceSnapshot eligible;
  eligible.inventory.gpus = snapshot.inventory.gpus;
  for (const fabric::Hca& hca : snapshot.inventory.hcas) {
    const std::string whole = DeviceId(hca);
    const auto load = wish.load.find(whole);
    // Its container gets the device nodes of now.
    const bool kept = own.contains(whole) && hca.health.Has(fabric::Stage::kRenumbering) &&
                      hca.health.troubles().size() == 1;
    const bool room = slots[whole] > (load == wish.load.end() ? 0 : load->second);
    if (kept || (hca.health.usable() && (room || own.contains(whole)))) {
      eligible.devices.push_back({whole, hca});
    }
  }
  return eligible;
}

}  // namespace

Binding Bind(const DeviceSnapshot& snapshot, const BindingWish& wish) {
  const DeviceSnapshot eligible = Eligible(snapshot, wish);
  std::vector<std::string> usable;
  for (const auto& [named, hca] : wish.now) {
    if (eligible.Find(hca) != nullptr) usable.push_back(hca);
  }
  const bool all_usable = usable.size() == wish.now.size();
  const bool anew = !wish.settled && !wish.gpus.empty();
  if (all_usable && (!anew || IsAligned(eligible, usable, wish.gpus))) return wish.now;

  Wish hcas;
  for (const Device& device : eligible.devices) hcas.available.push_back(device.id);
  if (!anew) hcas.must_include = usable;
  hcas.size = wish.now.size();
  hcas.gpus = wish.gpus;
  hcas.load = wish.load;
  std::vector<std::string> chosen = Prefer(eligible, hcas);

  // HCAs that can stay bound remain bound.
  Binding bound;
  const auto take = [&](const std::string& named, const std::string& hca) {
    const auto found = std::find(chosen.begin(), chosen.end(), hca);
    if (found == chosen.end() || bound.contains(named)) return;
    chosen.erase(found);
    bound[named] = hca;
  };
  for (const auto& [named, hca] : wish.now) take(named, hca);
  for (const auto& [named, hca] : wish.now) take(named, named);
  for (const auto& [named, hca] : wish.now) {
    if (bound.contains(named)) continue;
    if (chosen.empty()) {
      bound[named] = hca;
    } else {
      take(named, std::string(chosen.front()));
    }
  }
  return bound;
}

}  // namespace railhead::device_plugin
