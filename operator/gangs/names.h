// SPDX-License-Identifier: Apache-2.0
//
// What pods and the operator tell each other about gangs: labels and annotations of the pods.
#ifndef RAILHEAD_OPERATOR_GANGS_NAMES_H_
#define RAILHEAD_OPERATOR_GANGS_NAMES_H_

namespace railhead::op::gangs {

// The user's.
inline constexpr char kGangLabel[] = "railhead.io/gang";  // a name, or "true": all of one owner
inline constexpr char kRequireLevel[] = "railhead.io/require-level";
inline constexpr char kPreferLevel[] = "railhead.io/prefer-level";
inline constexpr char kPreferWait[] = "railhead.io/prefer-wait";  // how long for that; "10m"
inline constexpr char kTimeout[] = "railhead.io/gang-timeout";    // after which it waits no more
inline constexpr char kTimeoutPolicy[] = "railhead.io/gang-timeout-policy";  // what then
// "true": pods that are given other rails than the rest are none; it waits instead.
inline constexpr char kSameRails[] = "railhead.io/same-rails";
inline constexpr char kPattern[] = "railhead.io/pattern";  // ring, tree or alltoall

// Admission's; of pods without a Job the user's.
inline constexpr char kGangSize[] = "railhead.io/gang-size";  // in pods
// Of a Job's template: an eviction of one of its pods is no failure of the Job.
inline constexpr char kEvictable[] = "railhead.io/evictable";
inline constexpr char kGate[] = "railhead.io/gang";  // the scheduling gate

// Written when the gate is taken away.
inline constexpr char kRank[] = "railhead.io/rank";
inline constexpr char kMaster[] = "railhead.io/master-addr";   // rank 0, if it has a name in DNS
inline constexpr char kPlacement[] = "railhead.io/placement";  // which decision it was

inline constexpr char kHostname[] = "kubernetes.io/hostname";
inline constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";

inline constexpr int kMostPods = 100'000;  // of a gang

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NAMES_H_
