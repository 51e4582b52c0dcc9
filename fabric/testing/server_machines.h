// SPDX-License-Identifier: Apache-2.0
//
// Servers as their makers sell them, as host trees (role_machines.h).
#ifndef RAILHEAD_FABRIC_TESTING_SERVER_MACHINES_H_
#define RAILHEAD_FABRIC_TESTING_SERVER_MACHINES_H_

#include <vector>

#include "fabric/testing/role_machines.h"

namespace railhead::fabric::testing {

std::vector<RoleMachine> ServerMachines();

}  // namespace railhead::fabric::testing

#endif  // RAILHEAD_FABRIC_TESTING_SERVER_MACHINES_H_
