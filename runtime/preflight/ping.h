// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_PING_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"

namespace railhead::preflight {

// Sends 8 bytes there and back over a link that is connected and carries nothing else, some 20
// times, and returns the median for who `begins`; the other side must answer, and returns zero.
// Both sides must call this at the same time; the thread looks all the while, as a collective does.
//
// DeadlineExceeded when the peer does not answer; errors of the link are passed on.
absl::StatusOr<absl::Duration> Ping(transport::Link& link, bool begins, absl::Time deadline);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
