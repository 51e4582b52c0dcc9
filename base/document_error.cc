// SPDX-License-Identifier: Apache-2.0
#include "base/document_error.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

// Returns the number of characters to change, insert or delete (Levenshtein's distance).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of a's first i characters to b's first j
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

absl::Status DocumentError(absl::string_view source, int line, absl::string_view field,
                           absl::string_view what) {
  std::string place(source);
  if (line > 0) absl::StrAppend(&place, source.empty() ? "line " : ":", line);
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": ", field.empty() ? "the document" : field, ": ", what));
}

std::string ShownText(absl::string_view text) {
  constexpr size_t kLongest = 60;
  return absl::StrCat(absl::CEscape(text.substr(0, kLongest)), text.size() > kLongest ? "..." : "");
}

std::string QuotedText(absl::string_view text) { return absl::StrCat("\"", ShownText(text), "\""); }

std::string ListedTexts(const std::vector<std::string>& texts, absl::string_view last_separator) {
  if (texts.empty()) return "none";
  if (texts.size() == 1) return texts.back();
  return absl::StrCat(absl::StrJoin(texts.begin(), texts.end() - 1, ", "), last_separator,
                      texts.back());
}

std::optional<TextFault> ControlCharacter(absl::string_view text) {
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (!absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == '\n' || c == '\r' ||
        c == '\t') {
      continue;
    }
    return TextFault{line, absl::StrCat("holds the control character 0x",
                                        absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2),
                                        "; remove it, and save the text as UTF-8")};
  }
  return std::nullopt;
}

std::optional<std::string> NameFault(absl::string_view text) {
  if (text.empty()) return "must not be empty";
  if (!IsPrintableText(text)) {
    return absl::StrCat(
        QuotedText(text),
        " holds a control character, or one that is not seen; write it on one line");
  }
  return std::nullopt;
}

std::string NearestText(absl::string_view text, const std::vector<std::string>& known) {
  constexpr size_t kFarthest = 2;
  std::string nearest;
  size_t least = kFarthest + 1;
  for (const std::string& name : known) {
    if (text.size() > name.size() + kFarthest) continue;  // the distance is more than that
    const size_t distance = EditDistance(text, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string UnknownField(absl::string_view name, const std::vector<std::string>& known) {
  const std::string meant = NearestText(name, known);
  return meant.empty() ? absl::StrCat("this field is not known; the fields here are ",
                                      ListedTexts(known, " and "))
                       : absl::StrCat("this field is not known; did you mean ", meant, "?");
}

}  // namespace railhead
