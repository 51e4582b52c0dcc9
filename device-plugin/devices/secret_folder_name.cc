// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/secret_folder_name.h"

#include <string>

#include "absl/strings/string_view.h"
#include "device-plugin/devices/hex_name.h"

namespace railhead::device_plugin {

bool IsSecretFolderName(absl::string_view name) { return IsHexName(name); }

std::string SecretFolderIn(absl::string_view text) {
  return HexNameIn(text, "/railhead/secrets/", "");
}

}  // namespace railhead::device_plugin
