// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_

#include <string>

#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Why a rail of this rank cannot be used, as the name of the check that says more: "device_node",
// "port", "memlock"; "other" where none of them does, and "" for a rail that can be used. Pure.
std::string CauseOf(const RailFacts& rail, const RankFacts& rank);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_CAUSE_H_
