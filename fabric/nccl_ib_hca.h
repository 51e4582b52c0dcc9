// SPDX-License-Identifier: Apache-2.0
//
// The rails of a container as NCCL names them. Used by the node agent, and by NCCL's environment
// plugin where the agent's variable is absent.
#ifndef RAILHEAD_FABRIC_NCCL_IB_HCA_H_
#define RAILHEAD_FABRIC_NCCL_IB_HCA_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/pod_rails.h"

namespace railhead::fabric {

// Returns the value of NCCL_IB_HCA that selects exactly these rails, in their order: name, port and
// rail, as in "=rxe0:1:0,rxe1:1:1". NCCL before 2.30.7 ignores the part after the port.
inline std::string NcclIbHca(const std::vector<PodRail>& rails) {
  return absl::StrCat("=", absl::StrJoin(rails, ",", [](std::string* out, const PodRail& rail) {
                        absl::StrAppend(out, rail.device, ":", rail.port, ":", rail.rail);
                      }));
}

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NCCL_IB_HCA_H_
