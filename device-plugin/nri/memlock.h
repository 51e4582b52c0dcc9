// SPDX-License-Identifier: Apache-2.0
//
// Which containers are given the right to pin memory, and how much. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_

#include "device-plugin/proto/nri.pb.h"

namespace railhead::device_plugin::nri {

// What to change about a container before it is created; nothing for most.
//
// RDMA pins all memory that a NIC may read or write. A container runtime allows 8 MiB or less, and
// the capability IPC_LOCK, which lifts that, does nothing for a process that is not root; nor can a
// pod ask for another limit. So a container that holds an RDMA device (/dev/infiniband/uverbs*,
// which only a device plugin or an administrator gives) may pin without limit: what it pins counts
// against its limit of memory like everything else. A pod that has chosen its limits by the
// annotation of NRI's ulimit-adjuster keeps them: two plugins that set one limit of a container
// prevent its start.
::nri::pkg::api::v1alpha1::ContainerAdjustment AdjustMemlock(
    const ::nri::pkg::api::v1alpha1::PodSandbox& pod,
    const ::nri::pkg::api::v1alpha1::Container& container);

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_MEMLOCK_H_
