// SPDX-License-Identifier: Apache-2.0
//
// Commands that the CLI advises people to run. They contain names from the API, some of which any
// user may write, so every command is made here.
#ifndef RAILHEAD_CLI_OUTPUT_COMMAND_H_
#define RAILHEAD_CLI_OUTPUT_COMMAND_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Returns the command with the names in its places $0, $1, ... A text that is not a name
// (kube/object_name.h) is left out: the place shows NAME, for the reader to fill in.
//
//   Command("kubectl -n $0 logs $1 --tail=50", {pod.space, pod.name})
std::string Command(absl::string_view format, std::initializer_list<absl::string_view> names);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_OUTPUT_COMMAND_H_
