// SPDX-License-Identifier: Apache-2.0
//
// Looks up in this container what NCCL needs for SHARP, reductions by InfiniBand's switches: a
// network plugin with CollNet, and libsharp. findings.h evaluates the result.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_SHARP_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_SHARP_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Reads the environment by `variable` and files below `root`, the path of "/". Nothing is looked up
// unless NCCL_COLLNET_ENABLE is 1. Searches LD_LIBRARY_PATH (PATH for programs), the directories of
// /etc/ld.so.conf.d, the usual ones, and those of HPC-X and NVIDIA's SHARP packages. It does not
// see libraries that only an RPATH leads to. Never fails: what is not found stays empty.
SharpFacts ReadSharp(const std::string& root,
                     absl::FunctionRef<std::optional<std::string>(absl::string_view)> variable);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_SHARP_H_
