// SPDX-License-Identifier: Apache-2.0
//
// Which of the free devices a container should get. Pure.
//
// In this order: each of the container's GPUs has an HCA as near as can be; no HCA is far from all
// of them; the HCAs are far from one another (one at each PCIe switch first, then on both NUMA
// nodes, so that they share as little as can be); of shared HCAs the ones with the most free slots;
// the lowest rails, so that equal nodes give equal rails.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_PREFERENCE_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_PREFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device-plugin/offer/device_list.h"

namespace railhead::device_plugin {

struct Wish {
  std::vector<std::string> available;     // device ids, those of must_include among them
  std::vector<std::string> must_include;  // device ids
  size_t size = 0;                        // how many devices are needed
  std::vector<std::string> gpus;          // PCI addresses of the container's GPUs, if known
  // Device id to how many others share the device already, where `available` does not tell.
  std::map<std::string, int64_t> load = {};
};

// `size` device ids, must_include first; fewer when not as many are available. Ids that the
// snapshot does not know are taken last. Finds a choice that no exchange of one device makes
// better; takes O(size^2 * available * (size + gpus)) steps at most.
std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish);

// Whether the devices `held` are as near to the GPUs (PCI addresses) as any choice of so many of
// the snapshot's devices, free or not. True when a GPU or a device is not known.
bool IsAligned(const DeviceSnapshot& snapshot, const std::vector<std::string>& held,
               const std::vector<std::string>& gpus);

// What Prefer makes small, the most important first; for tests to compare choices.
std::vector<int64_t> CostOf(const DeviceSnapshot& snapshot, const Wish& wish,
                            const std::vector<std::string>& chosen);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_PREFERENCE_H_
