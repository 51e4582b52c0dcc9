// SPDX-License-Identifier: Apache-2.0
//
// Diagnosis of a job: from facts to findings. Pure: equal facts give equal findings. Used by the
// collector and `railhead doctor`.
#ifndef RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
#define RAILHEAD_OPERATOR_VERDICT_JUDGE_H_

#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict {

// Time of failed scrapes before a missing report counts. Until then the runtime may be starting, so
// only findings that its report cannot refute are made.
inline constexpr absl::Duration kSilence = absl::Minutes(1);

// Time that a rail must be down before it is reported without confirmation by a node's agent. The
// agents may not know yet, and the other end's report may be older.
inline constexpr absl::Duration kRailPatience = absl::Seconds(20);

// Time that a port must be down: flapping links recover within seconds.
inline constexpr absl::Duration kPortPatience = absl::Seconds(10);

// Time that pods wait for a node before it is a warning. Nodes created on demand with many GPUs
// take minutes to boot; starting agents offer devices within seconds.
inline constexpr absl::Duration kUntilNodesCome = absl::Minutes(10);
inline constexpr absl::Duration kUntilAgentsCome = absl::Seconds(30);

// Bytes; less than what NCCL pins for the channels to one peer with its default buffers of 4 MiB.
// The kernel's default limit is 8 MiB, in older kernels 64 KiB.
inline constexpr double kLeastMemlockForGpus = 64 << 20;

// Diagnoses the pods of a job: one finding per pod, reason and part, warnings first. Empty if
// everything is as requested.
//
// Only known facts count. A pod without a report is diagnosed by its spec and node only, a finished
// pod not at all. If a profile specifies or allows TCP, using it is not a fault. A report's
// refutation remains valid after the runtime ends.
std::vector<PodFinding> Judge(const JobFacts& job, const Cluster& cluster);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_JUDGE_H_
