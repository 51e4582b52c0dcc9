// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/ibnetdiscover_line.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/node_facts/seen_rail.h"

namespace railhead::fabric {
namespace {

// Gbit/s of one lane, rounded as sysfs rounds the rate of a 4-lane link.
struct LaneSpeed {
  absl::string_view name;
  double gbps;
};
constexpr std::array<LaneSpeed, 9> kLaneSpeeds = {{{"SDR", 2.5},
                                                   {"DDR", 5},
                                                   {"QDR", 10},
                                                   {"FDR10", 10},
                                                   {"FDR", 14},
                                                   {"EDR", 25},
                                                   {"HDR", 50},
                                                   {"NDR", 100},
                                                   {"XDR", 200}}};

}  // namespace

void IbLine::Space() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

bool IbLine::Mark(absl::string_view mark) { return absl::ConsumePrefix(&rest_, mark); }

std::optional<std::string> IbLine::Quoted(bool last) {
  Space();
  if (rest_.empty() || rest_[0] != '"') return std::nullopt;
  const size_t end = last ? rest_.rfind('"') : rest_.find('"', 1);
  if (end == absl::string_view::npos || end == 0) return std::nullopt;
  std::string text(rest_.substr(1, end - 1));
  rest_.remove_prefix(end + 1);
  return text;
}

std::optional<int> IbLine::Port() {
  Space();
  const size_t end = rest_.find(']');
  if (rest_.empty() || rest_[0] != '[' || end == absl::string_view::npos) return std::nullopt;
  int port = 0;
  const absl::string_view digits = rest_.substr(1, end - 1);
  if (!absl::SimpleAtoi(digits, &port) || port < 1 || port > kMaxIbPort) return std::nullopt;
  rest_.remove_prefix(end + 1);
  return port;
}

void IbLine::Guid() {
  Space();
  const size_t end = rest_.find(')');
  if (!rest_.empty() && rest_[0] == '(' && end != absl::string_view::npos) {
    rest_.remove_prefix(end + 1);
  }
}

double LinkGbps(absl::string_view comment) {
  comment = absl::StripTrailingAsciiWhitespace(comment);
  const absl::string_view word = comment.substr(comment.find_last_of(" \t") + 1);
  const size_t times = word.find('x');
  int lanes = 0;
  if (times == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, times), &lanes) ||
      lanes < 1 || lanes > 12) {
    return 0;
  }
  for (const LaneSpeed& speed : kLaneSpeeds) {
    if (word.substr(times + 1) == speed.name) return lanes * speed.gbps;
  }
  return 0;
}

std::pair<std::string, std::string> HostAndHca(absl::string_view description) {
  description = absl::StripAsciiWhitespace(description);
  if (absl::StrContains(description, "Technologies")) return {"", ""};
  const size_t space = description.find(' ');
  if (space == absl::string_view::npos) return {std::string(description), ""};
  return {std::string(description.substr(0, space)),
          std::string(absl::StripAsciiWhitespace(description.substr(space)))};
}

}  // namespace railhead::fabric
