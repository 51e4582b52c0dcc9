// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_RDMA_RAIL_H_
#define RAILHEAD_RUNTIME_COMM_RDMA_RAIL_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/pod_rails.h"
#include "runtime/transport/link.h"

namespace railhead::comm {

// An opened RDMA device of one rail. Lives as long as the links that come from it.
class RdmaRail {
 public:
  virtual ~RdmaRail() = default;
  // An endpoint for one peer; `peer` names it in errors.
  virtual absl::StatusOr<std::unique_ptr<transport::Endpoint>> Open(absl::string_view peer) = 0;
};

// Opens the device of a rail, or says what is missing.
using OpenRdmaRail =
    std::function<absl::StatusOr<std::unique_ptr<RdmaRail>>(const fabric::PodRail& rail)>;

// The real thing, over libibverbs.
absl::StatusOr<std::unique_ptr<RdmaRail>> OpenVerbsRail(const fabric::PodRail& rail);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_RDMA_RAIL_H_
