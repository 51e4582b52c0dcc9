// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_TEXT_FILE_H_
#define RAILHEAD_OPERATOR_TEXT_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace railhead::op {

// The whole of a file that a person wrote: at most 1 MiB. "-" is standard input. NotFound or
// InvalidArgument name the file.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_TEXT_FILE_H_
