// SPDX-License-Identifier: Apache-2.0
//
// Chooses the HCAs that a container with shared HCAs really gets. Pure. Used by AllocationStore.
//
// Kubelet allocates a container's resources in random order, so it may choose slots of HCAs before
// the container's GPUs are known. A slot is a right to a share, and any HCA of the resource can
// provide it: at the container's start its GPUs are known, and it is bound to the HCAs that it
// would have got with GPUs allocated first.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device-plugin/devices/device_list.h"

namespace railhead::device_plugin {

// Maps the HCAs that kubelet allocated (of the slots) to those that the container gets. Whole-HCA
// ids.
using Binding = std::map<std::string, std::string>;

struct BindingWish {
  Binding now;
  bool settled = false;                 // the container has started before, with `now`
  std::vector<std::string> gpus;        // PCI addresses of its GPUs; empty if none or unknown
  std::map<std::string, int64_t> load;  // number of other containers on each HCA (whole id)
};

// Returns the new binding, with as many different HCAs as before. It stays unchanged, except:
// - An HCA that is unusable is replaced.
// - At the first start, if the GPUs are known, all HCAs are chosen anew (preference.h) if that is
//   nearer to the GPUs.
// A new HCA is healthy, offered in slots by the snapshot, and has fewer other containers than
// slots; or it is one that kubelet allocated. If there are not enough, unusable HCAs stay.
Binding Bind(const DeviceSnapshot& snapshot, const BindingWish& wish);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_LATE_BINDING_H_
