// SPDX-License-Identifier: Apache-2.0
//
// Small files that others read while they are written anew: whole or not at all.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_SMALL_FILES_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_SMALL_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::device_plugin {

// Makes the folder (mode 0755, whatever the umask) where there is none; not what is above it.
absl::Status MakeFolder(const std::string& folder);

// Removes the folder if nothing is in it; one that is not there is removed.
absl::Status RemoveEmptyFolder(const std::string& folder);

// Makes `path` hold `content` (mode 0644) on disk, in the place of what was there. Until it is
// complete it is the file `path` + ".unfinished".
absl::Status WriteFile(const std::string& path, const std::string& content);

// Makes a file of this content, under a name of its hash between `prefix` and `suffix`, in the
// folder, which is made where there is none. Returns its path. One that is there is made young
// again.
absl::StatusOr<std::string> StoreByContent(const std::string& folder, absl::string_view prefix,
                                           absl::string_view suffix, const std::string& content);

// Nothing when it cannot be read, is no ordinary file, or is larger than 1 MiB.
std::optional<std::string> ReadFile(const std::string& path);

// The paths of what is in the folder under a name of this form, finished or not.
std::vector<std::string> ListFiles(const std::string& folder, absl::string_view prefix,
                                   absl::string_view suffix);

// Whether any of these was changed at `limit` or before.
bool AnyNotYoungerThan(const std::vector<std::string>& paths, absl::Time limit);

// Whether it was changed at `limit` or before. False when it is not there.
bool NotYoungerThan(const std::string& path, absl::Time limit);

// Removes a file, or the empty folder that a container runtime made where one was missing.
absl::Status RemoveFile(const std::string& path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_SMALL_FILES_H_
