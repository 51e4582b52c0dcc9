// SPDX-License-Identifier: Apache-2.0
//
// Decides which containers may lock memory without limit. Pure. Used by Session.
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_

#include "device-plugin/proto/nri.pb.h"

namespace railhead::device_plugin::nri {

// Returns the change to a container before its creation; empty for most.
//
// RDMA pins all memory that a NIC may access. Container runtimes allow 8 MiB or less. The
// capability IPC_LOCK lifts that only for root, and a pod cannot request another limit. So a
// container with an RDMA device (/dev/infiniband/uverbs*, which only a device plugin or an
// administrator can give) may lock memory without limit; it counts against the container's memory
// limit as usual. Pods with the annotation of NRI's ulimit-adjuster keep their limits: two plugins
// that set one limit prevent the container's start.
::nri::pkg::api::v1alpha1::ContainerAdjustment AdjustMemlock(
    const ::nri::pkg::api::v1alpha1::PodSandbox& pod,
    const ::nri::pkg::api::v1alpha1::Container& container);

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_
