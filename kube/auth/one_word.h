// SPDX-License-Identifier: Apache-2.0
//
// Check of text that becomes part of an HTTP request, such as a token: with white space it could
// become another header. Used by the readers of credentials.
#ifndef RAILHEAD_KUBE_AUTH_ONE_WORD_H_
#define RAILHEAD_KUBE_AUTH_ONE_WORD_H_

#include "absl/strings/string_view.h"

namespace railhead::kube {

// Returns true if the text has no white space and no control characters, and is not empty.
inline bool IsOneWord(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return false;
  }
  return !text.empty();
}

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_ONE_WORD_H_
