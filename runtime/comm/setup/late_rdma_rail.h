// SPDX-License-Identifier: Apache-2.0
//
// An RDMA rail whose device cannot be opened yet: its port is down, or its driver is being reset.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_LATE_RDMA_RAIL_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_LATE_RDMA_RAIL_H_

#include <memory>

#include "absl/status/status.h"
#include "fabric/pod_rails.h"
#include "runtime/base/log.h"
#include "runtime/comm/setup/rdma_rail.h"

namespace railhead::comm {

// Returns a rail that tries to open the device when a link is wanted: on a separate thread, after
// 1 s at first, then less often, at least once a minute. Until then its links cannot be opened. It
// registers host memory that it knows when it opens; GPU memory that was registered before is not
// read directly. `why`: the result of the first attempt.
std::unique_ptr<RdmaRail> MakeLateRdmaRail(OpenRdmaRail open, const fabric::PodRail& rail,
                                           const absl::Status& why, const Logger& log);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_LATE_RDMA_RAIL_H_
