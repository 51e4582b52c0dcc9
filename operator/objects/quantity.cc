// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/quantity.h"

#include <array>
#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace railhead::op::verdict {
namespace {

struct Suffix {
  absl::string_view text;
  double factor;
};

// apimachinery's resource.Quantity: powers of two, and of ten.
constexpr std::array<Suffix, 15> kSuffixes = {{
    {"", 1},
    {"Ki", 0x1p10},
    {"Mi", 0x1p20},
    {"Gi", 0x1p30},
    {"Ti", 0x1p40},
    {"Pi", 0x1p50},
    {"Ei", 0x1p60},
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
}};

}  // namespace

std::optional<double> ParseQuantity(const kube::Json& value) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const absl::string_view text = value.get_ref<const std::string&>();
    // "1E" is an exa, "1e3" and "1E3" are a thousand.
    size_t end = text.find_first_not_of("0123456789.+-");
    if (end != absl::string_view::npos && (text[end] == 'e' || text[end] == 'E') &&
        end + 1 < text.size() && text.find_first_not_of("0123456789+-", end + 1) == text.npos) {
      end = text.size();
    }
    const absl::string_view digits = text.substr(0, end);
    const absl::string_view suffix = text.substr(digits.size());
    if (!absl::SimpleAtod(digits, &number)) return std::nullopt;
    double factor = suffix == "E" ? 1e18 : 0;
    for (const Suffix& known : kSuffixes) {
      if (suffix == known.text) factor = known.factor;
    }
    if (factor == 0) return std::nullopt;
    number *= factor;
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace railhead::op::verdict
