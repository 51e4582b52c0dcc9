// SPDX-License-Identifier: Apache-2.0
//
// Round-trip time of a connected rail, for the preflight check.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_PING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"

namespace railhead::preflight {

inline constexpr size_t kSmallPing = 8;

struct PingResult {
  absl::Duration time;  // median of the round trips of kSmallPing bytes; zero unless it begins
  // Result of round trips of the link's largest frames, which a job sends. Small packets may pass
  // where large ones do not.
  absl::Status large;
};

// Sends small and then large frames back and forth over a connected, idle link, some 20 times. One
// side begins, the other answers. Call it on both sides at the same time; it polls without
// sleeping, as a collective does.
//
// DeadlineExceeded if nothing arrives for the given time; or errors of the link. If many ranks
// share the cores, all of it may take longer.
absl::StatusOr<PingResult> Ping(transport::Link& link, bool begins, absl::Duration patience);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_PING_H_
