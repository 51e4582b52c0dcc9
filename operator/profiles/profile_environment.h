// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_ENVIRONMENT_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_ENVIRONMENT_H_

#include <map>
#include <string>
#include <vector>

#include "operator/profiles/fabric_facts.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

struct ProfileVariable {
  std::string value;
  std::string reason;  // the field, or the rule, that it comes from
};

struct ProfileEnvironment {
  std::map<std::string, ProfileVariable> variables;  // by name
  std::vector<std::string> warnings;                 // what is left out, or will not work, and why
};

// The variables that a profile means for NCCL, UCX, gloo and our runtime, on the nodes that the
// facts tell of. Later ones win over earlier ones:
//   - rules of the fabric, and of requireRDMA: where a library must fail rather than go on by TCP,
//     it is not given TCP;
//   - the fields of the profile, without those that the nodes contradict: GPUDirect is asked for
//     only if all nodes with GPUs have it. Where no node tells anything, the profile's word counts;
//   - spec.env;
//   - where the libraries of spec.inject are, before what spec.env says of LD_LIBRARY_PATH and
//   PYTHONPATH;
//     the other variables of injected frameworks, unless spec.env has them.
// NCCL_IB_HCA is never among them: which HCAs a container has is known at its node, by the agent.
ProfileEnvironment EnvironmentOf(const RailProfile& profile, const FabricFacts& facts);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_ENVIRONMENT_H_
