// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/place_value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::topology {
namespace {

constexpr size_t kMaxValue = 63;  // of labels; names of objects may be longer
constexpr size_t kHash = 9;       // with its '-'
constexpr size_t kNumber = 8;     // characters of one below a million

bool Alphanumeric(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }
bool Digit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// FNV-1a, which gives the same result on every machine.
std::string Hash(absl::string_view name) {
  uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad8));
}

// Returns a number as text that sorts numerically and is never a prefix of another: five digits up
// to 89999; larger numbers follow a 9 and their length.
std::string Number(absl::string_view digits) {
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  const size_t length = digits.size();
  if (length < 5 || (length == 5 && digits[0] < '9')) {
    return absl::StrCat(std::string(5 - length, '0'), digits);
  }
  if (length < 9) return absl::StrCat("9", length, digits);
  return absl::StrCat("99", absl::Dec(length, absl::kZeroPad2), digits);
}

// Part of a name in a value: a text or a number.
struct Part {
  std::string text;
  bool number = false;
};

std::string Joined(const std::vector<Part>& parts, size_t longest) {
  std::string joined;
  for (const Part& part : parts) {
    absl::StrAppend(&joined, part.number ? part.text : part.text.substr(0, longest));
  }
  return joined;
}

// Returns the maximum length of texts, so that names with the same texts are cut equally,
// regardless of their numbers.
size_t LongestText(const std::vector<Part>& parts) {
  const auto length = [&parts](size_t longest) {
    size_t sum = 0;
    for (const Part& part : parts) {
      sum += part.number ? kNumber : std::min(longest, part.text.size());
    }
    return sum;
  };
  size_t longest = kMaxValue - kHash;
  while (longest > 1 && length(longest) > kMaxValue - kHash) --longest;
  return longest;
}

// Truncates the value to its limit, and adds the hash if a part of the name is lost.
std::string Bounded(std::string value, absl::string_view name, bool lost) {
  const bool starts = !value.empty() && Alphanumeric(value.front());
  if (!starts) value.insert(value.begin(), '0');
  if (starts && !lost && value.size() <= kMaxValue && Alphanumeric(value.back())) return value;
  if (value.size() > kMaxValue - kHash) value.resize(kMaxValue - kHash);
  return absl::StrCat(value, "-", Hash(name));
}

}  // namespace

std::string PlaceValue(absl::string_view name) {
  std::vector<Part> parts;
  bool lost = false;
  for (size_t at = 0; at < name.size();) {
    size_t end = at;
    while (end < name.size() && Digit(name[end])) ++end;
    if (end > at) {
      parts.push_back({Number(name.substr(at, end - at)), true});
      at = end;
      continue;
    }
    const char c = name[at++];
    const bool fits = Alphanumeric(c) || c == '-' || c == '_' || c == '.';
    if (parts.empty() || parts.back().number) parts.emplace_back();
    parts.back().text.push_back(fits ? c : '-');
    lost = lost || !fits;
  }
  std::string value = Joined(parts, name.size());
  if (value.size() > kMaxValue) {
    value = Joined(parts, LongestText(parts));
    lost = true;
  }
  return Bounded(std::move(value), name, lost);
}

std::string ObjectName(absl::string_view name) {
  std::string value;
  bool lost = false;
  for (const char c : name) {
    const bool fits =
        (Alphanumeric(c) && !absl::ascii_isupper(static_cast<unsigned char>(c))) || c == '-';
    const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
    value.push_back(fits ? c : Alphanumeric(lower) ? lower : '-');
    lost = lost || !fits;
  }
  return Bounded(std::move(value), name, lost);
}

}  // namespace railhead::topology
