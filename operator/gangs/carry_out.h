// SPDX-License-Identifier: Apache-2.0
//
// Does at the API server what the gangs' machine says.
#ifndef RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_
#define RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_

#include <functional>
#include <vector>

#include "kube/client.h"
#include "operator/gangs/gang_machine.h"

namespace railhead::op::gangs {

// The results of all works, one for each action. Gangs come one after the other, the actions of one
// side by side once the first has worked; those that have failed the last time are tried side by
// side. Ends when `leads` says so, or when nobody answers for a pod at all: then no further gang is
// begun.
std::vector<std::vector<Result>> CarryOut(kube::Api& api, const std::vector<Work>& works,
                                          const std::function<bool()>& leads);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CARRY_OUT_H_
