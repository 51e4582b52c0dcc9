// SPDX-License-Identifier: Apache-2.0
//
// Wording of messages about documents. Used by the readers of YAML and JSON.
#ifndef RAILHEAD_BASE_DOCUMENT_ERROR_H_
#define RAILHEAD_BASE_DOCUMENT_ERROR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead {

// Returns InvalidArgument "SOURCE:LINE: FIELD: WHAT". Line 0 and an empty field mean the whole
// document; without a source the message begins with "line LINE".
absl::Status DocumentError(absl::string_view source, int line, absl::string_view field,
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

// Returns the error text for a field that is not in `known`; suggests the most similar field, if
// there is one, else lists them.
std::string UnknownField(absl::string_view name, const std::vector<std::string>& known);

// Returns the entry of `known` most similar to `text`, or "".
std::string NearestText(absl::string_view text, const std::vector<std::string>& known);

}  // namespace railhead

#endif  // RAILHEAD_BASE_DOCUMENT_ERROR_H_
