// SPDX-License-Identifier: Apache-2.0
//
// HMAC-SHA256 message authentication.
#ifndef RAILHEAD_RUNTIME_BASE_MAC_H_
#define RAILHEAD_RUNTIME_BASE_MAC_H_

#include <cstddef>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead {

inline constexpr size_t kMacSize = 32;

// Returns HMAC-SHA256 over the label and the length-prefixed parts: different lists give different
// bytes. The label separates the uses of a key.
std::string Mac(absl::string_view key, absl::string_view label,
                std::initializer_list<absl::string_view> parts);

// Compares in constant time.
bool SameMac(absl::string_view a, absl::string_view b);

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_MAC_H_
