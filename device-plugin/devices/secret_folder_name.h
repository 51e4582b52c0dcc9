// SPDX-License-Identifier: Apache-2.0
//
// Names of the folders for secrets of jobs (secret_folders.h): 32 random hexadecimal digits. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_SECRET_FOLDER_NAME_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_SECRET_FOLDER_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// Path of such a folder in containers.
inline constexpr char kSecretFolderInPod[] = "/run/railhead/secret";

bool IsSecretFolderName(absl::string_view name);

// Returns the name in the first path of such a folder in the text, which may be of any bytes; "" if
// there is none.
std::string SecretFolderIn(absl::string_view text);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_SECRET_FOLDER_NAME_H_
