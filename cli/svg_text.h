// SPDX-License-Identifier: Apache-2.0
//
// The words of an SVG picture.
#ifndef RAILHEAD_CLI_SVG_TEXT_H_
#define RAILHEAD_CLI_SVG_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// A text as it stands in XML.
std::string XmlText(absl::string_view text);

// At most so many characters, cut in the middle, where names differ least.
std::string Shortened(const std::string& text, size_t most);

// Lines of at most so many characters, broken between words.
std::vector<std::string> Wrapped(const std::string& text, size_t most);

// A line of text at a place; `style` names a class of the picture's style sheet.
std::string SvgText(double x, double y, absl::string_view style, absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SVG_TEXT_H_
