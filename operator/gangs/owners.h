// SPDX-License-Identifier: Apache-2.0
//
// What the controllers that make pods do with them, by kind: the one table of it. How many pods a
// gang has and which rank is whose they write into the pods (workload.h). Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_OWNERS_H_
#define RAILHEAD_OPERATOR_GANGS_OWNERS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::op::gangs {

struct OwnerRules {
  // What becomes of a pod that is evicted before it has run.
  enum class Eviction {
    kMadeAgain,  // there is another one, and nothing else happens
    // It is counted as a failure, or ends what runs beside it, unless the owner says that it is not
    // (kEvictable).
    kMayCost,
    kIsTheEnd,  // nobody makes another one
  };

  absl::string_view kind;
  Eviction eviction;
  // Whether a pod may be made only when the one before it runs, so that all are never there at once
  // as long as the first one waits; and what to write so that it is not.
  bool may_be_in_order = false;
  absl::string_view at_once;
  absl::string_view evictable;  // what to write so that an eviction costs nothing
};

// `kind`: of what the pods work for (workload.h), or else of their controller; empty: none. A kind
// that is not in the table may do anything.
const OwnerRules& RulesOfOwner(absl::string_view kind);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_OWNERS_H_
