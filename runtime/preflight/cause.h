// SPDX-License-Identifier: Apache-2.0
//
// Cause for which a rail cannot be used, as a word. Used for the start report in the metrics.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_

#include <string>

#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Returns the name of the check that explains why a rail of this rank cannot be used:
// "device_node", "port", "memlock"; "other" if none does, and "" for a usable rail. Pure.
std::string CauseOf(const RailFacts& rail, const RankFacts& rank);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_
