// SPDX-License-Identifier: Apache-2.0
//
// A pod's rules about other pods: on which nodes they may be, and how they find it. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_POD_RULES_H_
#define RAILHEAD_OPERATOR_OBJECTS_POD_RULES_H_

#include <string>

#include "kube/json.h"

namespace railhead::op::gangs {

// Returns the required terms of an affinity ("podAffinity", "podAntiAffinity"); empty if there are
// none.
const kube::Json::array_t& RequiredTerms(const kube::Json& pod, const char* kind);

// Returns whether no other pod of its gang, all identical, may share its node: it has host ports,
// or a required anti-affinity per host to pods like itself.
bool OneOnANode(const kube::Json& pod);

// Returns the field with requirements about other pods that placement ignores: all except those of
// OneOnANode; empty if there is none.
std::string RuleAboutPods(const kube::Json& pod);

// Returns the name by which other pods of its namespace find it, "hostname.subdomain"; empty if it
// requests none.
std::string DnsNameOf(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_POD_RULES_H_
