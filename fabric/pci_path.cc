// SPDX-License-Identifier: Apache-2.0
#include "fabric/pci_path.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/pci_address.h"

namespace railhead::fabric {
namespace {

bool IsHex(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// "pci0000:00"
bool IsHostBridge(absl::string_view part) {
  if (!absl::ConsumePrefix(&part, "pci")) return false;
  const std::vector<absl::string_view> numbers = absl::StrSplit(part, ':');
  return numbers.size() == 2 && IsHex(numbers[0]) && IsHex(numbers[1]);
}

}  // namespace

PciPath ParsePciPath(absl::string_view sysfs_path) {
  PciPath path;
  bool below = false;  // whether the PCI part has ended
  for (const absl::string_view part : absl::StrSplit(sysfs_path, '/')) {
    if (IsHostBridge(part)) {
      path = {std::string(part), {}};
      below = false;
    } else if (!path.host_bridge.empty() && !below) {
      below = !ParsePciAddress(part).has_value();
      if (!below) path.functions.emplace_back(part);
    }
  }
  return path.functions.empty() ? PciPath{} : path;
}

}  // namespace railhead::fabric
