// SPDX-License-Identifier: Apache-2.0
//
// The parts of Judge, private to it. Pods are neither finished nor about to go.
#ifndef RAILHEAD_OPERATOR_VERDICT_RULES_H_
#define RAILHEAD_OPERATOR_VERDICT_RULES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict {

using Findings = std::vector<Finding>;
using Pods = std::vector<const JudgedPod*>;

// Why a pod that waits has no node. `just_lost` is of the job.
void JudgeScheduling(const JudgedPod& judged, const Cluster& cluster,
                     const std::set<std::pair<std::string, std::string>>& just_lost,
                     Findings& findings);
// What a pod says, against its node and its profile.
void JudgeSpec(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// How much memory it may pin, and has at /dev/shm.
void JudgeMemory(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// What its runtime says.
void JudgeRuntime(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// Which rails of these pods of the job were lost while it runs, and whose they are.
void JudgeLostRails(const Pods& pods, const Cluster& cluster, const JobFacts& job,
                    Findings& findings);
// What the pods of a job have in common. `one_program` is of the job.
void JudgeTogether(const Pods& pods, const Cluster& cluster, bool one_program, Findings& findings);
// Whether these are the pods of all ranks, as far as their job says how many there are. Jobs that
// work through a list, a few pods at a time, have never all; and no two of these know each other.
bool AreAllThere(const Pods& pods);

// Whether the pod's runtime may still report what it does, and take back what its spec or its node
// make one expect.
bool ReportMayCome(const JudgedPod& judged);
// What its ranks say of their start, now or before; null when nothing is known.
const RuntimeReport* StartOf(const JudgedPod& judged);
// How many devices of each resource the pod takes from its node.
std::map<std::string, int64_t> DevicesOf(const PodFacts& pod);
// The pod's profile, and null where it has none, or one that is no more.
const ProfileFacts* ProfileOf(const PodFacts& pod, const Cluster& cluster);
const NodeFacts* NodeOf(const PodFacts& pod, const Cluster& cluster);
// Whether the pod is to run without RDMA, or may.
bool TcpIsMeant(const PodFacts& pod, const Cluster& cluster);
// The container's name where only one can be meant; else nothing.
absl::string_view OnlyContainer(const PodFacts& pod);
// "8.0 MiB"
std::string Bytes(double bytes);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RULES_H_
