// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/next_offer.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/offer/assignment.h"
#include "device-plugin/offer/offer_health.h"
#include "device-plugin/offer/rail_map.h"
#include "device-plugin/offer/renumbering.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

// Maps names of HCAs to ids.
std::map<std::string, uint64_t> ById(const std::map<std::string, uint64_t>& by_name,
                                     const fabric::NodeInventory& inventory) {
  std::map<std::string, uint64_t> by_id;
  for (const fabric::Hca& hca : inventory.hcas) {
    const auto found = by_name.find(hca.name);
    if (hca.present && found != by_name.end()) by_id[DeviceId(hca)] = found->second;
  }
  return by_id;
}

}  // namespace

OfferState NextState(OfferState previous, const OfferInputs& inputs) {
  OfferState next = std::move(previous);
  const AgentConfig& config = inputs.config;
  next.found = inputs.scan.inventory;
  fabric::ChooseRails(next.found.hcas,
                      [&config](const fabric::Hca& hca) { return IsChosen(config, hca); });
  Recognize(inputs.holdings, next.rail_map, next.found);
  next.inventory = next.found;
  ApplyRails(config.rails, next.inventory.hcas);
  const std::set<std::string> away = JudgeOffers(config, HeldHcas(inputs.holdings), next.inventory);
  next.symbol_errors.Mark(ById(inputs.scan.symbol_errors, next.inventory), inputs.now,
                          next.inventory);
  next.flap_damper.Settle(ById(inputs.scan.link_downs, next.inventory), away, inputs.now,
                          next.inventory);
  next.renumbered = WithholdRenumbered(inputs.grants, next.inventory);
  next.devices = Assign(config, next.inventory, inputs.holdings.by_resource);
  return next;
}

}  // namespace railhead::device_plugin
