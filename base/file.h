// SPDX-License-Identifier: Apache-2.0
//
// Reads whole files of bounded size. Every program uses it for files that it does not write itself:
// configurations, kubeconfigs, tokens, rails.json, inputs of commands. Thread-safe.
//
// Errors name the path and carry the code of errno: NotFound, PermissionDenied, and so on.
#ifndef RAILHEAD_BASE_FILE_H_
#define RAILHEAD_BASE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace railhead {

// Whether ReadWholeFile opens a path whose last component is a symbolic link.
enum class Links { kFollow, kRefuse };

// Reads a regular file of at most `max_bytes`. Does not block on a pipe or a device. Returns
// InvalidArgument for a larger file, and for a path that is not a regular file.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes,
                                          Links links = Links::kFollow);

// Reads the input that a command line names: any file or pipe, or standard input for "-". Returns
// InvalidArgument for more than `max_bytes`. Blocks until the input ends.
absl::StatusOr<std::string> ReadInput(const std::string& path, size_t max_bytes);

}  // namespace railhead

#endif  // RAILHEAD_BASE_FILE_H_
