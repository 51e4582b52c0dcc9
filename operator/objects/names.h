// SPDX-License-Identifier: Apache-2.0
//
// Labels and annotations by which pods and the operator exchange data about gangs.
#ifndef RAILHEAD_OPERATOR_OBJECTS_NAMES_H_
#define RAILHEAD_OPERATOR_OBJECTS_NAMES_H_

#include "jobs/labels.h"

namespace railhead::op::gangs {

using jobs::kCompletionIndex;
using jobs::kGangLabel;  // set by users
using jobs::kGangSize;   // set by admission; by users for pods without a Job
using jobs::kMostPods;

// Set by users.
inline constexpr char kRequireLevel[] = "railhead.io/require-level";
inline constexpr char kPreferLevel[] = "railhead.io/prefer-level";
inline constexpr char kPreferWait[] = "railhead.io/prefer-wait";  // wait for that level; "10m"
inline constexpr char kTimeout[] = "railhead.io/gang-timeout";    // maximum wait
inline constexpr char kTimeoutPolicy[] = "railhead.io/gang-timeout-policy";  // action then
// "true": wait instead of starting pods with different rails.
inline constexpr char kSameRails[] = "railhead.io/same-rails";
inline constexpr char kPattern[] = "railhead.io/pattern";  // ring, tree or alltoall

// Set by admission, on a Job's template: evicting one of its pods is not a failure of the Job.
inline constexpr char kEvictable[] = "railhead.io/evictable";
inline constexpr char kGate[] = "railhead.io/gang";  // scheduling gate

// Written when the gate is removed.
inline constexpr char kRank[] = "railhead.io/rank";
inline constexpr char kMaster[] = "railhead.io/master-addr";   // rank 0, if it has a DNS name
inline constexpr char kPlacement[] = "railhead.io/placement";  // name of the decision

inline constexpr char kHostname[] = "kubernetes.io/hostname";

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_NAMES_H_
