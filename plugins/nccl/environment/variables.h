// SPDX-License-Identifier: Apache-2.0
//
// Values that the environment plugin gives to NCCL's variables, so that a job without the operator
// uses the rails that its pod was given. They are those that the node agent and the operator set.
// Pure.
#ifndef RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_VARIABLES_H_
#define RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_VARIABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "fabric/pod_rails.h"
#include "runtime/config/env.h"
#include "runtime/config/lookup.h"

namespace railhead::nccl {

struct RailFacts {
  // Of the rails file, without those that RAILHEAD_RAILS excludes, ascending; empty: unknown.
  std::vector<fabric::PodRail> rails;
  std::optional<int> gid_index;  // ChooseGidIndex of the rails
  std::string library;           // path of this library; "": unknown
};

struct Variable {
  std::string name;
  std::string value;
  std::string reason;  // "rails.json", "RAILHEAD_IB_TC"

  bool operator==(const Variable&) const = default;
};

// Returns the variables to add to the process's own, which `own` reads. One that is set there, even
// to an empty value, is left out: the user's values apply. `settings` are those of `own`, and
// valid.
std::vector<Variable> VariablesFor(const RailFacts& facts, const config::Settings& settings,
                                   config::Lookup own);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_VARIABLES_H_
