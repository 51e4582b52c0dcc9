// SPDX-License-Identifier: Apache-2.0
//
// Check of rank 0's decision by each rank. Rank 0 takes the strictest protection of frames that any
// rank requests (decision.h), but reports and decision cross the network unsigned. So each rank
// compares what arrives with its own request, and fails the start if it is weaker. Pure. Used by
// setup.h.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_PROTECTION_CHECK_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_PROTECTION_CHECK_H_

#include "absl/status/status.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/config/env.h"

namespace railhead::comm {

// Returns PermissionDenied, with the requested and the decided protection, if data between
// `world_size` ranks would be protected less than `own` requests.
absl::Status CheckProtection(const config::Settings& own, const Decision& decision, int world_size);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_PROTECTION_CHECK_H_
