// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
#define RAILHEAD_OPERATOR_VERDICT_JUDGE_H_

#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict {

// How long a pod may be asked for a report in vain. Until then its runtime may just be starting:
// nothing is said that its report could take back.
inline constexpr absl::Duration kSilence = absl::Minutes(1);

// How long a rail must be lost before it is told without the word of any node's agent: these may
// just be learning of it, and a report of the other end may be older.
inline constexpr absl::Duration kRailPatience = absl::Seconds(20);

// How long a port must be down: links flap, and come back within seconds.
inline constexpr absl::Duration kPortPatience = absl::Seconds(10);

// How long pods wait for a node before that is a warning: where nodes are made on demand, one with
// many GPUs takes minutes to boot; and where agents are started, they offer devices within seconds.
inline constexpr absl::Duration kUntilNodesCome = absl::Minutes(10);
inline constexpr absl::Duration kUntilAgentsCome = absl::Seconds(30);

// Less than what NCCL pins for the channels to one peer, by its default buffers of 4 MiB. The
// kernel gives 8 MiB to who asks for nothing, and older ones 64 KiB.
inline constexpr double kLeastMemlockForGpus = 64 << 20;

// What is wrong with the pods of a job, one finding for each pod, reason and part; warnings come
// first. Nothing where all is as it was asked for. Pure: the same facts give the same findings.
//
// Only what is known counts. A pod without a report is judged by its spec and its node alone, one
// that has finished not at all; and where a profile says TCP, or allows it, using it is no fault.
// What a report has refuted stays so when the runtime ends.
std::vector<Finding> Judge(const JobFacts& job, const Cluster& cluster);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
