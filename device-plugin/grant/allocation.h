// SPDX-License-Identifier: Apache-2.0
//
// Allocation: everything that one container gets for the devices that kubelet chose for it.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {

// Path of rails.json in containers.
inline constexpr char kRailsPathInPod[] = "/run/railhead/rails.json";
// Path of the NCCL topology file in containers.
inline constexpr char kTopologyPathInPod[] = "/run/railhead/nccl-topology.xml";

// A network interface that moves into the container with its HCA.
struct MovedInterface {
  std::string host_name;
  std::string name;  // in the container: "rail0"

  bool operator==(const MovedInterface&) const = default;
};

struct Allocation {
  std::vector<std::string> char_devices;  // host paths, the same in the container
  // "=rxe0:1:0,rxe1:1:1", in rail order: exact name, port, rail. NCCL before 2.30.7 ignores the
  // part after the port.
  std::string nccl_ib_hca;
  fabric::PodRails rails;  // content of rails.json, in rail order
  // For resources with moveInterfaces, unless an earlier container of the pod has the interface
  // already.
  std::vector<MovedInterface> interfaces = {};
};

// Plans exactly the devices of `ids`, and /dev/infiniband/rdma_cm if the node has it. NotFound for
// an id that the node never had, InvalidArgument for an empty or repeating list, FailedPrecondition
// for an unusable device; the message names the id.
absl::StatusOr<Allocation> PlanAllocation(const DeviceSnapshot& snapshot, const std::string& node,
                                          const std::vector<std::string>& ids);

// Plans these HCAs (whole ids) in their current state, even with the link down. FailedPrecondition
// for an HCA without a device node.
absl::StatusOr<Allocation> PlanForHcas(const DeviceSnapshot& snapshot, const std::string& node,
                                       const std::set<std::string>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_H_
