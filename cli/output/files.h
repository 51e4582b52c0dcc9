// SPDX-License-Identifier: Apache-2.0
//
// Output files of subcommands, such as that of `railhead plan --save`.
#ifndef RAILHEAD_CLI_OUTPUT_FILES_H_
#define RAILHEAD_CLI_OUTPUT_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

// Writes a file; replaces an existing one.
absl::Status WriteText(const std::string& path, absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_OUTPUT_FILES_H_
