// SPDX-License-Identifier: Apache-2.0
//
// Computes the devices that each resource offers, from the agent's previous state and new inputs.
// Pure. Used by Agent after each scan or change.
//
//   scan -> rails (rail_map.h) -> the configuration's numbers (config.h) -> health by network
//   (offer_health.h) -> noisy links (symbol_error_monitor.h) -> flapping links (flap_damper.h)
//   -> containers with device nodes of other HCAs (renumbering.h) -> devices (assignment.h)
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_NEXT_OFFER_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_NEXT_OFFER_H_

#include <map>
#include <string>
#include <vector>

#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/time_point.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/offer/flap_damper.h"
#include "device-plugin/offer/rail_map.h"
#include "device-plugin/offer/renumbering.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/offer/symbol_error_monitor.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

struct OfferState {
  RailMap rail_map;
  FlapDamper flap_damper;
  SymbolErrorMonitor symbol_errors;
  fabric::NodeInventory found;                         // as read, with missing HCAs
  fabric::NodeInventory inventory;                     // as offered: numbered, with health
  std::map<std::string, std::vector<Device>> devices;  // by resource
  std::vector<Renumbering> renumbered;                 // containers
};

struct OfferInputs {
  const AgentConfig& config;
  const Scan& scan;  // latest; may be that of the previous call
  const Holdings& holdings;
  const std::vector<Grant>& grants;  // of containers that may run
  TimePoint now;
};

OfferState NextState(OfferState previous, const OfferInputs& inputs);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_NEXT_OFFER_H_
