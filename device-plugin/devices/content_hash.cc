// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/content_hash.h"

#include <openssl/sha.h>

#include <array>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

std::string ContentHash(absl::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace railhead::device_plugin
