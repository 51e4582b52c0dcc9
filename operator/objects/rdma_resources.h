// SPDX-License-Identifier: Apache-2.0
//
// Resources that are RDMA devices: the list by which admission, the verdict and gangs decide
// whether a container requests RDMA and whether a node has it. The chart writes the same list into
// the conditions of the webhook and the policies. Pure.
//
//   const absl::StatusOr<RdmaResources> rdma =
//       RdmaResources::Parse({"rdma/*", "nvidia.com/hostdev"});
//   rdma->Contains("rdma/hca");  // true
#ifndef RAILHEAD_OPERATOR_OBJECTS_RDMA_RESOURCES_H_
#define RAILHEAD_OPERATOR_OBJECTS_RDMA_RESOURCES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::op {

// The domain of the resource names by which containers request a device of a DRA device class, such
// as deviceclass.resource.kubernetes.io/roce-nic. Nodes do not list them: kube-scheduler allocates
// their devices.
inline constexpr absl::string_view kDeviceClassDomain = "deviceclass.resource.kubernetes.io/";

class RdmaResources {
 public:
  RdmaResources() : patterns_{"rdma/*"} {}

  // Each pattern is the name of an extended resource (domain/name), or ends with '*', which matches
  // any suffix. Returns InvalidArgument with the first pattern that is invalid or also matches GPUs
  // or Kubernetes' own resources other than those of device classes, and with the known pattern of
  // the nearest spelling.
  static absl::StatusOr<RdmaResources> Parse(const std::vector<std::string>& patterns);

  bool Contains(absl::string_view resource) const;

  const std::vector<std::string>& patterns() const { return patterns_; }

  bool operator==(const RdmaResources&) const = default;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_RDMA_RESOURCES_H_
