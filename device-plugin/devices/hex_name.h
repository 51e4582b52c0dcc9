// SPDX-License-Identifier: Apache-2.0
//
// Names of files and folders that consist of 32 hexadecimal digits, and finding them in a response
// that kubelet stored. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_HEX_NAME_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_HEX_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

bool IsHexName(absl::string_view name);

// Returns the first such name in the text, which may be of any bytes, between `before` and `after`;
// "" if there is none.
std::string HexNameIn(absl::string_view text, absl::string_view before, absl::string_view after);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_HEX_NAME_H_
