// SPDX-License-Identifier: Apache-2.0
//
// Readers of a pod's fields that several kinds use. Malformed fields count as absent. Pure.
#ifndef RAILHEAD_JOBS_FIELDS_H_
#define RAILHEAD_JOBS_FIELDS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "jobs/kind.h"
#include "jobs/labels.h"
#include "kube/json.h"

namespace railhead::jobs {

// Largest number of pods that are not a gang.
inline constexpr int kMostCount = 999'999'999;

// Returns the variable's value in the first container that sets it to a string; empty if none does.
std::string VariableOf(const kube::Json& pod, absl::string_view name);

// Returns a whole number without sign, as Kubernetes writes its own; nullopt for anything else.
std::optional<int> NumberIn(absl::string_view text, int min, int max = kMostPods);

// Returns whether the object has the annotation, possibly with an empty value.
bool HasAnnotation(const kube::Json& object, absl::string_view name);

// Returns the name of the pod's Job: its label, else its owner; empty: none.
std::string JobNameOf(const Pod& pod);

// Returns the DNS name of another pod of the pod's job; empty if the pod has no subdomain.
std::string HostOf(absl::string_view name, const kube::Json& pod);

// Causes of a missing size.
extern const Cause kNoStamp, kNotAboveRank;

// Takes the number of pods from the annotation railhead.io/world-size. `missing`: the cause if
// there is none.
void TakeSize(const Pod& pod, const Cause& missing, Rank& rank);

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_FIELDS_H_
