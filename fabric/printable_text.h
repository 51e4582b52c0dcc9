// SPDX-License-Identifier: Apache-2.0
//
// Text from strangers, made fit for people: for terminals, Events, logs and pictures. A pod's page,
// a switch's description or a webhook's refusal may hold sequences that control a terminal, or
// characters that show words in another order than they have. Used at every output to people.
//
//   out << "  " << fabric::PrintableText(event.message) << "\n";
#ifndef RAILHEAD_FABRIC_PRINTABLE_TEXT_H_
#define RAILHEAD_FABRIC_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

inline constexpr size_t kNoTextLimit = static_cast<size_t>(-1);

// The text on one line, in UTF-8. Control characters (also C1), those that change the direction of
// writing, those that are invisible, and bytes that are not UTF-8 become escapes such as \x1b or
// \u202e; all else stays. A result of more than `max_bytes` (at least 3) is cut between characters
// and ends with "...". To apply it twice changes nothing.
std::string PrintableText(absl::string_view text, size_t max_bytes = kNoTextLimit);

// The same of a text of several lines, whose line ends stay.
std::string PrintableLines(absl::string_view text);

// Whether PrintableText would leave it as it is.
bool IsPrintableText(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PRINTABLE_TEXT_H_
