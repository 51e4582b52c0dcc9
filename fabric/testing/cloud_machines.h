// SPDX-License-Identifier: Apache-2.0
//
// Machines that clouds rent, as host trees (role_machines.h).
#ifndef RAILHEAD_FABRIC_TESTING_CLOUD_MACHINES_H_
#define RAILHEAD_FABRIC_TESTING_CLOUD_MACHINES_H_

#include <vector>

#include "fabric/testing/role_machines.h"

namespace railhead::fabric::testing {

std::vector<RoleMachine> CloudMachines();

}  // namespace railhead::fabric::testing

#endif  // RAILHEAD_FABRIC_TESTING_CLOUD_MACHINES_H_
