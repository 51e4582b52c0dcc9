// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
#define RAILHEAD_OPERATOR_VERDICT_JUDGE_H_

#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict {

// How long a pod may run and report nothing while others of its job do.
inline constexpr absl::Duration kSilence = absl::Minutes(1);

// What is wrong with the pods of a job, by pod and reason; nothing where all is as it was asked
// for. Pure: the same facts give the same findings.
//
// Only what is known counts. A pod without a report is judged by its spec and its node alone, one
// that has finished not at all; and where a profile says TCP, or allows it, using it is no fault.
std::vector<Finding> Judge(const JobFacts& job, const ClusterFacts& cluster, absl::Time now);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
