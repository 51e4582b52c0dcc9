// SPDX-License-Identifier: Apache-2.0
//
// Names of rails.json files on the host (rails_files.h): "rails-", 32 digits of the content's hash,
// ".json". Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_RAILS_FILE_NAME_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_RAILS_FILE_NAME_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/hex_name.h"

namespace railhead::device_plugin {

inline constexpr char kRailsPrefix[] = "rails-";
inline constexpr char kRailsSuffix[] = ".json";

// Returns the digits in the first path of such a file in the text, which may be of any bytes; "" if
// there is none.
inline std::string RailsFileIn(absl::string_view text) {
  return HexNameIn(text, absl::StrCat("/railhead/", kRailsPrefix), kRailsSuffix);
}

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_RAILS_FILE_NAME_H_
