// SPDX-License-Identifier: Apache-2.0
//
// Atomic writing of small files that other processes read.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_ATOMIC_FILE_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_ATOMIC_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::device_plugin {

// Creates the directory (mode 0755, whatever the umask) if it is missing; not its parents.
absl::Status MakeFolder(const std::string& folder);

// Removes the directory if it is empty. A missing directory is not an error.
absl::Status RemoveEmptyFolder(const std::string& folder);

// Replaces `path` by `content` (mode 0644) atomically and durably, through the temporary file
// `path` + ".unfinished".
absl::Status WriteFile(const std::string& path, const std::string& content);

// Stores `content` in the directory (created if missing) under a name of `prefix`, its hash and
// `suffix`. Returns the path. Resets the age of an existing file.
absl::StatusOr<std::string> StoreByContent(const std::string& folder, absl::string_view prefix,
                                           absl::string_view suffix, const std::string& content);

// Returns nullopt if it cannot be read, is not a regular file, or is larger than 1 MiB.
std::optional<std::string> ReadFile(const std::string& path);

// Returns whether ReadFile may succeed another time: a regular file of at most 1 MiB, also one that
// a fault of the disk, or too many open files, keep from being read now.
bool MayBeReadable(const std::string& path);

// Returns the paths of files with such names in the directory, complete or not.
std::vector<std::string> ListFiles(const std::string& folder, absl::string_view prefix,
                                   absl::string_view suffix);

// Returns true if any of these was last changed at or before `limit`.
bool AnyNotYoungerThan(const std::vector<std::string>& paths, absl::Time limit);

// Returns true if it was last changed at or before `limit`; false if it does not exist.
bool NotYoungerThan(const std::string& path, absl::Time limit);

// Removes a file, or the empty directory that a container runtime created in place of a missing
// file.
absl::Status RemoveFile(const std::string& path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_ATOMIC_FILE_H_
