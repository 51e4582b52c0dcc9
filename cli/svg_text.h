// SPDX-License-Identifier: Apache-2.0
//
// Text in SVG pictures.
#ifndef RAILHEAD_CLI_SVG_TEXT_H_
#define RAILHEAD_CLI_SVG_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Escapes text for XML.
std::string XmlText(absl::string_view text);

// Shortens to at most `most` characters, cut in the middle, where names differ least.
std::string Shortened(const std::string& text, size_t most);

// Splits into lines of at most `most` characters, between words.
std::vector<std::string> Wrapped(const std::string& text, size_t most);

// Returns a line of text at a position; `style`: class of the style sheet.
std::string SvgText(double x, double y, absl::string_view style, absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SVG_TEXT_H_
