// SPDX-License-Identifier: Apache-2.0
//
// Rules of Judge, private to it. Pods that are finished or being deleted are excluded.
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

using Findings = std::vector<PodFinding>;
using Pods = std::vector<const JudgedPod*>;

// Explains why a waiting pod has no node. `just_lost`: of the job.
void JudgeScheduling(const JudgedPod& judged, const Cluster& cluster,
                     const std::set<std::pair<std::string, std::string>>& just_lost,
                     Findings& findings);
// Checks a pod's spec against its node and profile.
void JudgeSpec(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// Checks the memory that it may pin, and its size of /dev/shm.
void JudgeMemory(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// Checks its runtime's report.
void JudgeRuntime(const JudgedPod& judged, const Cluster& cluster, Findings& findings);
// Finds rails that these pods of the job lost while running, and the node at fault.
void JudgeLostRails(const Pods& pods, const Cluster& cluster, const JobFacts& job,
                    Findings& findings);
// Compares the pods of a job. `one_program`: of the job.
void JudgeTogether(const Pods& pods, const Cluster& cluster, bool one_program, Findings& findings);
// Returns whether these are the pods of all ranks, as far as their job gives the number. Jobs that
// process a list, a few pods at a time, never have all, and their pods are independent.
bool AreAllThere(const Pods& pods);

// Returns whether the pod's runtime may still send a report that refutes what spec or node suggest.
bool ReportMayCome(const JudgedPod& judged);
// Returns the current or earlier report of its ranks' start; null if unknown.
const RuntimeReport* StartOf(const JudgedPod& judged);
// Returns the number of devices per resource that the pod uses on its node.
std::map<std::string, int64_t> DevicesOf(const PodFacts& pod);
// Returns the pod's profile; null if it has none, or if the profile no longer exists.
const ProfileFacts* ProfileOf(const PodFacts& pod, const Cluster& cluster);
const NodeFacts* NodeOf(const PodFacts& pod, const Cluster& cluster);
// Returns whether the pod should or may run without RDMA.
bool TcpIsMeant(const PodFacts& pod, const Cluster& cluster);
// Returns the name of the only container that can be meant; empty if there are several.
absl::string_view OnlyContainer(const PodFacts& pod);
// Returns "8.0 MiB".
std::string Bytes(double bytes);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RULES_H_
