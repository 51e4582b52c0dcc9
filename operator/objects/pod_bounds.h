// SPDX-License-Identifier: Apache-2.0
//
// Bounds on what the operator keeps of one pod for gangs. Any user may write a pod of 1.5 MB, so
// that without bounds a few pods of one tenant would exceed the operator's memory, and matching
// their rules with nodes its time. Pure. Used by admission, which refuses such a pod's gang, and by
// the reader of pods, for those that bypass admission.
//
// Sizes are those of strings and fields in memory, about twice the text of a list of short values.
#ifndef RAILHEAD_OPERATOR_OBJECTS_POD_BOUNDS_H_
#define RAILHEAD_OPERATOR_OBJECTS_POD_BOUNDS_H_

#include <cstddef>
#include <string>

#include "kube/json.h"

namespace railhead::op::gangs {

// Maximum bytes of the rules about nodes (nodeSelector, node affinity, tolerations) of a pod, and
// of its claims (anti-affinity, host ports): an affinity to about 500 host names.
inline constexpr size_t kMostRules = 32U << 10U;
// Maximum bytes of a pod's labels: about 80.
inline constexpr size_t kMostLabels = 8U << 10U;
// Maximum number of resources that a pod requests, and of bytes of the name of each.
inline constexpr size_t kMostResources = 32;
inline constexpr size_t kMostOfAName = 316;  // DOMAIN/NAME, as the API allows
// Maximum bytes of the scheduler's message about a pod, and of an annotation.
inline constexpr size_t kMostOfAMessage = 1024;
inline constexpr size_t kMostOfAnAnnotation = 63;

// Parts of a pod that are too large to be kept.
struct PodExcess {
  bool rules = false;   // about nodes
  bool claims = false;  // about its own node: anti-affinity, host ports
  bool labels = false;
  // The largest field of the first of these, its size and the bound; empty: everything fits.
  std::string field;
  size_t bytes = 0;
  size_t most = 0;
  // Sizes, in bytes.
  size_t rules_bytes = 0;
  size_t claims_bytes = 0;
  size_t labels_bytes = 0;
};

PodExcess ExcessOf(const kube::Json& pod);

// Returns the excess in words, with the fix; empty if everything fits.
std::string WhyNotKept(const PodExcess& excess);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_POD_BOUNDS_H_
