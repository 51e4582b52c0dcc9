// SPDX-License-Identifier: Apache-2.0
//
// Which HCAs a container with shared HCAs really gets. Pure.
//
// Kubelet allocates a container's resources in random order, so it may choose slots of HCAs before
// anybody knows the container's GPUs. A slot is a right to a share, and any HCA of the resource can
// fulfil it: when the container starts, its GPUs are known, and it is bound to the HCAs that it
// would have got had the GPUs come first.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device-plugin/offer/device_list.h"

namespace railhead::device_plugin {

// The HCAs that kubelet named (the HCAs of the slots) to those that the container has. Whole ids.
using Binding = std::map<std::string, std::string>;

struct BindingWish {
  Binding now;
  bool settled = false;  // the container has started before, with what is `now`
  std::vector<std::string>
      gpus;  // PCI addresses of its GPUs; empty when there are none, or unknown
  std::map<std::string, int64_t> load;  // how many other containers have each HCA (whole id)
};

// What it is bound to from now on: as many different HCAs as before. It stays with what it has, but
// - an HCA that cannot be used is replaced;
// - at its first start, and when its GPUs are known, all are chosen anew (preference.h) if that is
//   nearer to the GPUs.
// A new HCA is a healthy one that the snapshot offers in slots, with fewer other containers than
// slots; or one that kubelet named. Where there are not enough, what cannot be used stays.
Binding Bind(const DeviceSnapshot& snapshot, const BindingWish& wish);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_
