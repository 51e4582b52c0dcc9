// SPDX-License-Identifier: Apache-2.0
//
// Detects in the ranks' positions that two ranks called different collectives. Pure. Used by
// HangReporter.
#ifndef RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_
#define RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// Returns Internal if two ranks called different things as the same collective (the earliest known
// of both): they may wait for each other without exchanging a message. OK if none are known.
absl::Status Contradiction(const std::vector<Seen>& ranks);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_
