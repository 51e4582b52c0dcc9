// SPDX-License-Identifier: Apache-2.0
//
// Hash for names that must be unique and stable: files by content, sockets and devices by their
// long names.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTENT_HASH_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTENT_HASH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// Returns the SHA-256 of `content` as 64 lower-case hexadecimal digits.
std::string ContentHash(absl::string_view content);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTENT_HASH_H_
