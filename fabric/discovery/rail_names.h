// SPDX-License-Identifier: Apache-2.0
//
// Names of RDMA devices that say which rail they are: NVIDIA's nic-configuration-operator gives
// them by the rdmaDevicePrefix of a NicInterfaceNameTemplate, such as "rdma_r%rail_id%". Pure.
#ifndef RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_
#define RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// The rail that a device of this name is by the pattern, in which %rail_id%, %plane_id% and
// %nic_id% stand for numbers. Nothing where the name is not of the pattern, or the pattern does not
// say it.
std::optional<int> RailByName(absl::string_view pattern, absl::string_view device);

// Adds a finding for each template that calls a device of another rail than its node's agent does.
// Where a rail is several devices, agents call each a rail: that is not compared.
void CompareRailNames(const Observations& seen, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_RAIL_NAMES_H_
