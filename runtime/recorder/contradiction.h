// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_
#define RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// Internal if two ranks have called different things as the same collective, the earliest that is
// known of both: they may wait in vain without a message between them. OK if none are known to.
absl::Status Contradiction(const std::vector<Seen>& ranks);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_CONTRADICTION_H_
