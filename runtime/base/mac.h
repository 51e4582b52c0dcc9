// SPDX-License-Identifier: Apache-2.0
//
// What is proven with a key: HMAC-SHA256.
#ifndef RAILHEAD_RUNTIME_BASE_MAC_H_
#define RAILHEAD_RUNTIME_BASE_MAC_H_

#include <cstddef>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead {

inline constexpr size_t kMacSize = 32;

// HMAC-SHA256 over the label and the parts, each with its length: no two lists give the same bytes.
// A label says which of the uses of the key this is.
std::string Mac(absl::string_view key, absl::string_view label,
                std::initializer_list<absl::string_view> parts);

// Compares two of them in a time that does not depend on where they differ.
bool SameMac(absl::string_view a, absl::string_view b);

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_MAC_H_
