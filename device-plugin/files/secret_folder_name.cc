// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/secret_folder_name.h"

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

constexpr absl::string_view kBefore = "/railhead/secrets/";
constexpr size_t kDigits = 32;

}  // namespace

bool IsSecretFolderName(absl::string_view name) {
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

std::string SecretFolderIn(absl::string_view text) {
  for (size_t at = text.find(kBefore); at != absl::string_view::npos;
       at = text.find(kBefore, at + 1)) {
    const absl::string_view name = text.substr(at + kBefore.size(), kDigits);
    if (IsSecretFolderName(name)) return std::string(name);
  }
  return "";
}

}  // namespace railhead::device_plugin
