// SPDX-License-Identifier: Apache-2.0
//
// Quotes from a user's pod in the webhook's messages.
#ifndef RAILHEAD_OPERATOR_ADMISSION_QUOTED_H_
#define RAILHEAD_OPERATOR_ADMISSION_QUOTED_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::op {

// Quotes the beginning of a user's text for a message.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", text.substr(0, kLongest), text.size() > kLongest ? "..." : "", "'");
}

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_QUOTED_H_
