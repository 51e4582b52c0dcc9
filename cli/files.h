// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_FILES_H_
#define RAILHEAD_CLI_FILES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

// The whole of a file, or of standard input for "-". Errors name the file: NotFound, or
// InvalidArgument for more than `most` bytes and for what cannot be read.
absl::StatusOr<std::string> ReadText(const std::string& path, size_t most);

// Writes a file, in place of one that is there.
absl::Status WriteText(const std::string& path, absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_FILES_H_
