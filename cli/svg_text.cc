// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_text.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"

namespace railhead::cli {

std::string XmlText(absl::string_view text) {
  // Not all characters are allowed in XML, not even escaped.
  return absl::StrReplaceAll(PrintableText(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const auto inside = [&text](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  // Not inside a character of several bytes.
  size_t begin = (most - 1) / 2;
  size_t end = text.size() - (most - 1 - begin);
  while (begin > 0 && inside(begin)) --begin;
  while (inside(end)) ++end;
  return absl::StrCat(text.substr(0, begin), "…", text.substr(end));
}

std::vector<std::string> Wrapped(const std::string& text, size_t most) {
  std::vector<std::string> lines(1);
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > most) {
      lines.emplace_back();
    }
    absl::StrAppend(&lines.back(), lines.back().empty() ? "" : " ", word);
  }
  return lines;
}

std::string SvgText(double x, double y, absl::string_view style, absl::string_view text) {
  return absl::StrCat("<text x=\"", x, "\" y=\"", y, "\" class=\"", style, "\">", XmlText(text),
                      "</text>\n");
}

}  // namespace railhead::cli
