// SPDX-License-Identifier: Apache-2.0
//
// Runs a program that this process needs an answer of, such as a kubeconfig's credential plugin.
#ifndef RAILHEAD_KUBE_AUTH_RUN_COMMAND_H_
#define RAILHEAD_KUBE_AUTH_RUN_COMMAND_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace railhead::kube {

struct Command {
  std::string program;  // path, or name on the PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  bool reads_input = false;  // gets this process's standard input; else an empty one
};

struct CommandLimits {
  absl::Duration time = absl::Minutes(2);  // long enough for a login by the user
  size_t output_bytes = 1U << 20U;
};

// Runs the command, and returns what it wrote to standard output; its errors go to this process's.
// Blocks until it ends, and kills it at a limit. It is in this process's group, so that Ctrl-C ends
// both. Errors are "PROGRAM ...": NotFound if there is no such program, FailedPrecondition if it
// cannot be run or does not end with 0, DeadlineExceeded, ResourceExhausted. Thread-safe.
absl::StatusOr<std::string> RunCommand(const Command& command, const CommandLimits& limits = {});

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_RUN_COMMAND_H_
