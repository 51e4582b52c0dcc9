// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/hex_name.h"

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

constexpr size_t kDigits = 32;

}  // namespace

bool IsHexName(absl::string_view name) {
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

std::string HexNameIn(absl::string_view text, absl::string_view before, absl::string_view after) {
  for (size_t at = text.find(before); at != absl::string_view::npos;
       at = text.find(before, at + 1)) {
    const absl::string_view rest = text.substr(at + before.size());
    const absl::string_view name = rest.substr(0, kDigits);
    if (IsHexName(name) && absl::StartsWith(rest.substr(kDigits), after)) return std::string(name);
  }
  return "";
}

}  // namespace railhead::device_plugin
