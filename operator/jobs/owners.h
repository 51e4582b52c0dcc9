// SPDX-License-Identifier: Apache-2.0
//
// Behaviour of the controllers that create pods, by kind, as one table. Size and ranks of gangs
// come from the pods instead (workload.h). Pure.
#ifndef RAILHEAD_OPERATOR_JOBS_OWNERS_H_
#define RAILHEAD_OPERATOR_JOBS_OWNERS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::op::gangs {

struct OwnerRules {
  // Consequence of evicting a pod before it has run.
  enum class Eviction {
    kMadeAgain,  // it is recreated, without other effects
    // It counts as a failure, or ends pods beside it, unless the owner declares otherwise
    // (kEvictable).
    kMayCost,
    kIsTheEnd,  // it is not recreated
  };

  absl::string_view kind;
  Eviction eviction;
  // True if a pod may be created only once the previous one runs. Then a gang never completes while
  // its first pod is gated. `at_once` is the fix.
  bool may_be_in_order = false;
  absl::string_view at_once;
  absl::string_view evictable;  // fix that makes evictions free of cost
};

// Returns the row of a kind: that of the pods' workload (workload.h), else of their controller;
// empty: none. Assumes the worst of unknown kinds.
const OwnerRules& RulesOfOwner(absl::string_view kind);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_JOBS_OWNERS_H_
