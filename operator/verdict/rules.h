// SPDX-License-Identifier: Apache-2.0
//
// The parts of Judge, private to it. Pods are neither finished nor about to go.
#ifndef RAILHEAD_OPERATOR_VERDICT_RULES_H_
#define RAILHEAD_OPERATOR_VERDICT_RULES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict {

using Findings = std::vector<Finding>;

// Why a pod that waits has no node.
void JudgeScheduling(const PodFacts& pod, const ClusterFacts& cluster, Findings& findings);
// What a pod says, against its node and its profile.
void JudgeSpec(const JudgedPod& judged, const ClusterFacts& cluster, Findings& findings);
// How much memory it may pin, and has at /dev/shm.
void JudgeMemory(const JudgedPod& judged, const ClusterFacts& cluster, Findings& findings);
// What its runtime says.
void JudgeRuntime(const JudgedPod& judged, const ClusterFacts& cluster, Findings& findings);
// What the pods of a job have in common.
void JudgeTogether(const std::vector<const JudgedPod*>& pods, const ClusterFacts& cluster,
                   absl::Time now, Findings& findings);

// How many devices of each resource the pod takes from its node.
std::map<std::string, int64_t> DevicesOf(const PodFacts& pod);
// The pod's profile, and null where it has none, or one that is no more.
const ProfileFacts* ProfileOf(const PodFacts& pod, const ClusterFacts& cluster);
const NodeFacts* NodeOf(const PodFacts& pod, const ClusterFacts& cluster);
// Whether the pod is to run without RDMA, or may.
bool TcpIsMeant(const PodFacts& pod, const ClusterFacts& cluster);
// The container's name where only one can be meant; else nothing.
absl::string_view OnlyContainer(const PodFacts& pod);
// "8.0 MiB"
std::string Bytes(double bytes);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RULES_H_
