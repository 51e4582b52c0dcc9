// SPDX-License-Identifier: Apache-2.0
#include "kube/object_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace railhead::kube {

bool IsObjectName(absl::string_view text) {
  constexpr size_t kLongest = 253;
  return !text.empty() && text.size() <= kLongest &&
         absl::ascii_isalnum(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return absl::ascii_isalnum(letter) || letter == '.' || letter == '_' || letter == '-';
         });
}

}  // namespace railhead::kube
