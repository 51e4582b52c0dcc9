// SPDX-License-Identifier: Apache-2.0
//
// Makes untrusted text safe for terminals, Events, logs and pictures. A pod's page, a switch's
// description or a webhook's error may contain terminal control sequences, or characters that
// reorder the displayed text. Used at every output to people.
//
//   out << "  " << PrintableText(event.message) << "\n";
#ifndef RAILHEAD_BASE_PRINTABLE_TEXT_H_
#define RAILHEAD_BASE_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead {

inline constexpr size_t kNoTextLimit = static_cast<size_t>(-1);

// Returns the text on one line, in UTF-8. Escapes control characters (also C1), bidirectional and
// invisible characters, and invalid UTF-8, as \x1b or \u202e. A result longer than `max_bytes` (at
// least 3) is cut between characters and ends with "...". Idempotent.
std::string PrintableText(absl::string_view text, size_t max_bytes = kNoTextLimit);

// Does the same but keeps line ends.
std::string PrintableLines(absl::string_view text);

// Returns true if PrintableText would not change the text.
bool IsPrintableText(absl::string_view text);

}  // namespace railhead

#endif  // RAILHEAD_BASE_PRINTABLE_TEXT_H_
