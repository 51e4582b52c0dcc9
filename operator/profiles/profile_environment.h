// SPDX-License-Identifier: Apache-2.0
//
// Environment variables that a RailProfile gives to pods. Pure. Used by admission.
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
  std::string reason;  // field or rule that it comes from
};

struct ProfileEnvironment {
  std::map<std::string, ProfileVariable> variables;  // by name
  std::vector<std::string> warnings;                 // what is omitted or will not work, and why
};

// Returns the variables of a profile for NCCL, UCX, gloo and the Railhead runtime, on nodes with
// these facts. In ascending precedence:
//  - rules of the fabric and of requireRDMA: a library that must fail instead of falling back to
//    TCP gets no TCP;
//  - fields of the profile, except those that the nodes contradict: GPUDirect is not requested if
//    no node with GPUs has it. If no node reports facts, the profile applies;
//  - spec.env;
//  - paths of spec.inject's libraries, prepended to spec.env's LD_LIBRARY_PATH and PYTHONPATH; the
//    other variables of injected frameworks, unless spec.env sets them.
// NCCL_IB_HCA is never included: a container's HCAs are known on its node only, where the agent
// sets it.
ProfileEnvironment EnvironmentOf(const RailProfile& profile, const FabricFacts& facts);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_ENVIRONMENT_H_
