// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/rail_names.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/listed.h"

namespace railhead::fabric {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Removes and returns the leading digits as a number; leading zeros are ignored.
std::optional<int> TakeNumber(absl::string_view& text) {
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  int number = 0;
  if (digits == 0 || (digits > 1 && text[0] == '0') ||
      !absl::SimpleAtoi(text.substr(0, digits), &number)) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return number;
}

// Removes and returns the leading placeholder of a pattern; empty if there is none.
absl::string_view TakePlaceholder(absl::string_view& pattern) {
  for (const absl::string_view placeholder : {"%rail_id%", "%plane_id%", "%nic_id%"}) {
    if (absl::ConsumePrefix(&pattern, placeholder)) return placeholder;
  }
  return "";
}

}  // namespace

std::optional<int> RailByName(absl::string_view pattern, absl::string_view device) {
  std::optional<int> rail;
  while (!pattern.empty()) {
    const absl::string_view placeholder = TakePlaceholder(pattern);
    if (placeholder.empty()) {
      if (device.empty() || device[0] != pattern[0]) return std::nullopt;
      pattern.remove_prefix(1);
      device.remove_prefix(1);
      continue;
    }
    // If digits follow, the end of the number is ambiguous.
    absl::string_view next = pattern;
    if (!TakePlaceholder(next).empty() || (!pattern.empty() && IsDigit(pattern[0]))) {
      return std::nullopt;
    }
    const std::optional<int> number = TakeNumber(device);
    if (!number) return std::nullopt;
    if (placeholder != "%rail_id%") continue;
    if (rail && rail != number) return std::nullopt;
    rail = number;
  }
  return device.empty() ? rail : std::nullopt;
}

void CompareRailNames(const Observations& seen, std::vector<Finding>& findings) {
  for (const SeenRailNames& names : seen.rail_names) {
    if (names.devices > 1) continue;
    std::vector<std::string> nodes;
    std::string example;
    for (const SeenNode& node : seen.nodes) {
      if (!node.rails.has_value()) continue;
      bool differs = false;
      for (const SeenRail& rail : *node.rails) {
        const std::optional<int> named = RailByName(names.pattern, rail.device);
        if (!named || *named == rail.rail) continue;
        differs = true;
        if (!example.empty()) continue;
        example =
            absl::StrCat(rail.device, " of ", node.name, " is rail ", *named,
                         " by its name, but rail ", rail.rail, " according to its node agent");
      }
      if (differs) nodes.push_back(node.name);
    }
    if (nodes.empty()) continue;
    findings.push_back({Severity::kFail, kContradiction, Listed(nodes),
                        absl::StrCat("rails differ from NicInterfaceNameTemplate ", names.name,
                                     " (", names.where, "): ", example, "; agents take precedence"),
                        "correct the template's railPciAddresses, or `rails` in the node agents' "
                        "configuration"});
  }
}

}  // namespace railhead::fabric
