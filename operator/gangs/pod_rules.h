// SPDX-License-Identifier: Apache-2.0
//
// What a pod says for other pods: of their nodes, and how they find it. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_POD_RULES_H_
#define RAILHEAD_OPERATOR_GANGS_POD_RULES_H_

#include <string>

#include "kube/json.h"

namespace railhead::op::gangs {

// The required terms of an affinity ("podAffinity", "podAntiAffinity"), none if there are no
// such terms.
const kube::Json::array_t& RequiredTerms(const kube::Json& pod, const char* kind);

// Whether no other pod of its gang, which are all alike, may be on the pod's node: it has ports of
// the node, or a required anti-affinity to pods as itself on a host.
bool OneOnANode(const kube::Json& pod);

// The field with what a pod requires of other pods' nodes and placement does not look at: all but
// that of OneOnANode; empty: there is nothing.
std::string RuleAboutPods(const kube::Json& pod);

// The name by which other pods of its namespace find the pod, "hostname.subdomain"; empty: it asks
// for none.
std::string DnsNameOf(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_POD_RULES_H_
