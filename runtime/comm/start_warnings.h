// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_START_WARNINGS_H_
#define RAILHEAD_RUNTIME_COMM_START_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/decision.h"
#include "runtime/preflight/facts.h"

namespace railhead::comm {

// What a job's rank should say of its own RDMA rails when it starts: what the pre-flight warns of,
// as far as that is known from its own facts and all ranks' reports. Pure.
std::vector<std::string> StartWarnings(int rank, const preflight::RankFacts& own,
                                       absl::Span<const RankReport> reports);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_START_WARNINGS_H_
