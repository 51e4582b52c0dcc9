// SPDX-License-Identifier: Apache-2.0
//
// Executes the actions of the gang machine at the API server.
#ifndef RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_
#define RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_

#include <functional>
#include <vector>

#include "kube/client.h"
#include "operator/gangs/gang_machine.h"

namespace railhead::op::gangs {

// Returns the results of all works, one per action. Gangs are processed one after the other; a
// gang's first action runs alone, the others concurrently after it succeeds. Gangs that failed last
// time run their first actions concurrently. Stops if `leads` returns false, or if the server does
// not respond for some pod: then starts no further gang.
std::vector<std::vector<Result>> CarryOut(kube::Api& api, const std::vector<Work>& works,
                                          const std::function<bool()>& leads);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_
