// SPDX-License-Identifier: Apache-2.0
//
// Round-trip time of a connected rail, for the preflight check.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_PING_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"

namespace railhead::preflight {

// Sends 8 bytes back and forth over a connected, idle link, some 20 times. The side with `begins`
// returns the median; the other must answer, and returns zero. Call it on both sides at the same
// time; it polls without sleeping, as a collective does.
//
// DeadlineExceeded if the peer is silent for `patience`; or errors of the link. Where many share
// the cores, all of it may take longer.
absl::StatusOr<absl::Duration> Ping(transport::Link& link, bool begins, absl::Duration patience);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
