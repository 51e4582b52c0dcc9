// SPDX-License-Identifier: Apache-2.0
//
// Warnings at the start of a communicator.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/preflight/facts.h"

namespace railhead::comm {

// Returns rate and MTU that most ranks have, by rail.
std::vector<RailReport> UsualRails(absl::Span<const RankReport> reports);

// Returns the warnings about a rank's own RDMA rails: those of the pre-flight check that follow
// from its own facts and the usual rails.
std::vector<std::string> StartWarnings(const preflight::RankFacts& own,
                                       absl::Span<const RailReport> usual);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_
