// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/preflight/facts.h"

namespace railhead::comm {

// The rate and MTU that most ranks have, by rail.
std::vector<RailReport> UsualRails(absl::Span<const RankReport> reports);

// What a rank should say of its own RDMA rails when it starts: what the pre-flight warns of, as far
// as that is known from its own facts and the usual rails.
std::vector<std::string> StartWarnings(const preflight::RankFacts& own,
                                       absl::Span<const RailReport> usual);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_START_WARNINGS_H_
