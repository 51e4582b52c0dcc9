// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/tuner/network_rates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable_text.h"
#include "fabric/rail_limit.h"

namespace railhead::nccl {
namespace {

constexpr double kHighestSpeed = 100'000;
constexpr size_t kLongestQuote = 200;

// Decimal digits with at most one point, so that every rank reads the same number.
bool ParseRate(absl::string_view text, double& into) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c) || c == '.';
  });
  return plain && absl::SimpleAtod(text, &into) && into <= kHighestSpeed;
}

}  // namespace

bool RequestsTuner(absl::string_view value) {
  const absl::string_view word = absl::StripAsciiWhitespace(value);
  return !word.empty() && word != "off";
}

absl::StatusOr<NetworkRates> ParseNetworkRates(absl::string_view value) {
  const auto wrong = [value] {
    return absl::InvalidArgumentError(absl::StrCat(
        kTunerVariable, "='", PrintableText(value, kLongestQuote),
        "' is not allowed: set it to off, or to RATE/SPEED in Gbit/s for each of at most ",
        fabric::kMaxRails, " rails of a node, such as 400/400,100/400, with no rate above its ",
        "speed and at least one above 0"));
  };
  const std::vector<absl::string_view> rails = absl::StrSplit(value, ',');
  if (rails.size() > static_cast<size_t>(fabric::kMaxRails)) return wrong();
  NetworkRates sum;
  for (const absl::string_view rail : rails) {
    const std::pair<absl::string_view, absl::string_view> both =
        absl::StrSplit(absl::StripAsciiWhitespace(rail), absl::MaxSplits('/', 1));
    double rate = 0;
    double speed = 0;
    if (!ParseRate(both.first, rate) || !ParseRate(both.second, speed) || rate > speed ||
        speed == 0) {
      return wrong();
    }
    sum.real += rate;
    sum.told += speed;
  }
  if (sum.real == 0) return wrong();
  return sum;
}

}  // namespace railhead::nccl
