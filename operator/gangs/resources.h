// SPDX-License-Identifier: Apache-2.0
//
// What pods ask for and nodes have, counted as kube-scheduler counts it.
#ifndef RAILHEAD_OPERATOR_GANGS_RESOURCES_H_
#define RAILHEAD_OPERATOR_GANGS_RESOURCES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/rdma_resources.h"

namespace railhead::op::gangs {

// In thousandths, by the resource's name: "cpu" of a core, "memory" of a byte, "pods" of a pod,
// "rdma/hca" of a device. Never negative; nothing is there as 0.
using Resources = std::map<std::string, int64_t>;

// What a pod takes of its node: of its containers all, of init containers that end the largest
// beside what runs then, what is said for the pod as a whole instead of that, its overhead, and
// itself as one of "pods". What cannot be read is left out. `spec` is the pod's.
Resources RequestsOf(const kube::Json& spec);

// What a node has for pods: its status.allocatable.
Resources AllocatableOf(const kube::Json& node);

void Add(const Resources& more, Resources& all);
void Subtract(const Resources& less, Resources& all);  // never below nothing

// Whether a resource of this name is GPUs (*/gpu, as vendors name them).
bool IsGpus(absl::string_view name);

// The sums of HCAs and of GPUs, in whole devices.
int HcasIn(const Resources& resources, const RdmaResources& rdma);
int GpusIn(const Resources& resources);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_RESOURCES_H_
