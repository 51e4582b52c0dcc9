// SPDX-License-Identifier: Apache-2.0
//
// Resources of pods and nodes, counted like kube-scheduler. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_RESOURCES_H_
#define RAILHEAD_OPERATOR_OBJECTS_RESOURCES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op::gangs {

// Amounts in thousandths by resource name: "cpu" of a core, "memory" of a byte, "pods" of a pod,
// "rdma/hca" of a device. Never negative; amounts of 0 are omitted.
using Resources = std::map<std::string, int64_t>;

// Returns the requests of a pod on its node: the sum of its containers and sidecars or, if larger,
// of an init container and the sidecars beside it; a pod-level request replaces these; plus
// overhead; plus 1 of "pods". Skips unreadable values. `spec`: of the pod.
Resources RequestsOf(const kube::Json& spec);

// Returns the node's status.allocatable.
Resources AllocatableOf(const kube::Json& node);

// Keeps at most kMostResources of them (pod_bounds.h): the API's own, HCAs and GPUs first. A pod
// that requests more can run on no node, but may claim to.
void KeepMost(const RdmaResources& rdma, Resources& requests);

void Add(const Resources& more, Resources& all);

// Returns whether the resource is GPUs (*/gpu, the vendors' convention).
bool IsGpus(absl::string_view name);

// Return the sum of HCAs or GPUs, in whole devices.
int HcasIn(const Resources& resources, const RdmaResources& rdma);
int GpusIn(const Resources& resources);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_RESOURCES_H_
