// SPDX-License-Identifier: Apache-2.0
//
// RDMA device names that contain the rail, as NVIDIA's nic-configuration-operator sets them by the
// rdmaDevicePrefix of a NicInterfaceNameTemplate, such as "rdma_r%rail_id%". Pure.
#ifndef RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_
#define RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Returns the rail of a device name by the pattern, in which %rail_id%, %plane_id% and %nic_id% are
// numbers. Nullopt if the name does not match, or the pattern has no rail.
std::optional<int> RailByName(absl::string_view pattern, absl::string_view device);

// Adds a finding for each template that gives a device another rail than its node's agent. Rails of
// several devices are not compared, since agents number each device.
void CompareRailNames(const Observations& seen, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_
