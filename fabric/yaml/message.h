// SPDX-License-Identifier: Apache-2.0
//
// How messages about a YAML text are worded.
#ifndef RAILHEAD_FABRIC_YAML_MESSAGE_H_
#define RAILHEAD_FABRIC_YAML_MESSAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

// InvalidArgument "SOURCE:LINE: FIELD: WHAT"; line 0 and an empty field are the whole document.
absl::Status YamlError(absl::string_view source, int line, absl::string_view field,
                       absl::string_view what);

// Text from a file as a message shows it: on one line, and not endless; the second in quotes.
std::string ShownText(absl::string_view text);
std::string QuotedText(absl::string_view text);

// "a, b and c" with " and " as the last separator.
std::string ListedTexts(const std::vector<std::string>& texts, absl::string_view last_separator);

// The first control character of a text, which must have none: YAML allows none, but yaml-cpp takes
// them, and one of them (4) for the end of the text, without a word about the rest.
struct TextFault {
  int line = 1;
  std::string what;
};
std::optional<TextFault> ControlCharacter(absl::string_view text);

// What is wrong with a text as a name, for a message; nothing where it can be one.
std::optional<std::string> NameFault(absl::string_view text);

// The one of `known` that was probably meant by `text`, or an empty text.
std::string NearestText(absl::string_view text, const std::vector<std::string>& known);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_YAML_MESSAGE_H_
