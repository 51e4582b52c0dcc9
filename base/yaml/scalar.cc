// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/scalar.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace railhead {

bool IsYamlNumber(absl::string_view text) {
  constexpr absl::string_view kDigits = "0123456789";
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0o") {
    return text.size() > 2 && std::all_of(text.begin() + 2, text.end(), [](char c) {
             return absl::ascii_isxdigit(static_cast<unsigned char>(c));
           });
  }
  double number = 0;
  if (text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos) {
    return text.find_first_of(kDigits) != absl::string_view::npos &&
           absl::SimpleAtod(text, &number);
  }
  const std::string special = absl::AsciiStrToLower(text.substr(0, 5));
  return special == ".nan" || special == ".inf" || special == "-.inf" || special == "+.inf";
}

bool IsYamlBoolean(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text.substr(0, 6));
  return lower == "true" || lower == "false";
}

std::optional<int> YamlInteger(absl::string_view text, int low, int high) {
  int number = 0;
  const bool decimal = text == "0" || (!text.empty() && text[0] >= '1' && text[0] <= '9');
  if (decimal && absl::SimpleAtoi(text, &number) && number >= low && number <= high) return number;
  return std::nullopt;
}

}  // namespace railhead
