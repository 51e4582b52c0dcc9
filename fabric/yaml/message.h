// SPDX-License-Identifier: Apache-2.0
//
// Wording of messages about YAML documents.
#ifndef RAILHEAD_FABRIC_YAML_MESSAGE_H_
#define RAILHEAD_FABRIC_YAML_MESSAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

// Returns InvalidArgument "SOURCE:LINE: FIELD: WHAT"; line 0 and an empty field mean the whole
// document.
absl::Status YamlError(absl::string_view source, int line, absl::string_view field,
                       absl::string_view what);

// Formats file content for messages: on one line, shortened; QuotedText adds quotes.
std::string ShownText(absl::string_view text);
std::string QuotedText(absl::string_view text);

// Returns "a, b and c" for " and " as the last separator.
std::string ListedTexts(const std::vector<std::string>& texts, absl::string_view last_separator);

// Finds the first control character. YAML forbids them, but yaml-cpp accepts them, and treats one
// (4) as the end of the text without an error.
struct TextFault {
  int line = 1;
  std::string what;
};
std::optional<TextFault> ControlCharacter(absl::string_view text);

// Returns why a text is not valid as a name; nullopt if it is.
std::optional<std::string> NameFault(absl::string_view text);

// Returns the entry of `known` most similar to `text`, or "".
std::string NearestText(absl::string_view text, const std::vector<std::string>& known);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_YAML_MESSAGE_H_
