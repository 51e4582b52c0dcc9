// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_role.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace railhead::fabric {
namespace {

// In a virtual machine only the device id identifies a virtual function.
constexpr std::array<std::pair<absl::string_view, absl::string_view>, 13> kVirtualIds = {
    {{"15b3", "1014"},
     {"15b3", "1016"},
     {"15b3", "1018"},
     {"15b3", "101a"},
     {"15b3", "101c"},
     {"15b3", "101e"},
     {"15b3", "a2d3"},
     {"14e4", "1806"},
     {"14e4", "1807"},
     {"14e4", "1808"},
     {"14e4", "1809"},
     {"8086", "154c"},
     {"8086", "1889"}}};

bool IsManagementPlane(const RoleEvidence& seen) {
  int number = 0;
  absl::string_view digits = seen.name;
  return absl::ConsumePrefix(&digits, "smi") && absl::SimpleAtoi(digits, &number);
}

bool IsDataDirect(const RoleEvidence& seen) {
  return seen.has_main_side && absl::EndsWith(seen.name, "_dma");
}

bool IsSwitchManagement(const RoleEvidence& seen) { return seen.manages_switch; }

bool IsSoftware(const RoleEvidence& seen) { return !seen.on_pci; }

bool IsRepresentor(const RoleEvidence& seen) { return IsRepresentorPort(seen.port_name); }

bool IsScalable(const RoleEvidence& seen) { return absl::StartsWith(seen.part, "sf"); }

bool IsVirtual(const RoleEvidence& seen) {
  return !seen.physical_function.empty() ||
         std::find(kVirtualIds.begin(), kVirtualIds.end(),
                   std::pair<absl::string_view, absl::string_view>(seen.vendor, seen.device)) !=
             kVirtualIds.end();
}

bool IsSwitchdev(const RoleEvidence& seen) { return seen.no_gid_table; }

bool IsBond(const RoleEvidence& seen) { return seen.bond; }

bool IsAny(const RoleEvidence& /*seen*/) { return true; }

struct RoleRow {
  HcaRole role;
  const char* name;
  bool (*test)(const RoleEvidence&);
  bool can_be_rail;
};

constexpr std::array<RoleRow, 10> kRoles = {
    {{HcaRole::kManagementPlane, "management-plane", IsManagementPlane, false},
     {HcaRole::kDataDirect, "data-direct", IsDataDirect, false},
     {HcaRole::kSwitchManagement, "nvlink-switch", IsSwitchManagement, false},
     {HcaRole::kSoftware, "software", IsSoftware, true},
     {HcaRole::kRepresentor, "representor", IsRepresentor, false},
     {HcaRole::kScalableFunction, "sf", IsScalable, true},
     {HcaRole::kVirtualFunction, "vf", IsVirtual, true},
     {HcaRole::kSwitchdevFunction, "switchdev-pf", IsSwitchdev, false},
     {HcaRole::kBond, "bond", IsBond, true},
     {HcaRole::kPhysicalFunction, "pf", IsAny, true}}};

const RoleRow& RowOf(HcaRole role) {
  return *std::find_if(kRoles.begin(), kRoles.end(),
                       [role](const RoleRow& row) { return row.role == role; });
}

}  // namespace

bool IsRepresentorPort(absl::string_view port_name) {
  if (absl::ConsumePrefix(&port_name, "c")) {
    while (!port_name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(port_name[0]))) {
      port_name.remove_prefix(1);
    }
  }
  return absl::StartsWith(port_name, "pf");
}

HcaRole RoleOf(const RoleEvidence& evidence) {
  return std::find_if(kRoles.begin(), kRoles.end(),
                      [&evidence](const RoleRow& row) { return row.test(evidence); })
      ->role;
}

absl::string_view ToString(HcaRole role) { return RowOf(role).name; }

std::optional<HcaRole> ParseHcaRole(absl::string_view name) {
  const auto* const row = std::find_if(kRoles.begin(), kRoles.end(),
                                       [name](const RoleRow& one) { return one.name == name; });
  if (row == kRoles.end()) return std::nullopt;
  return row->role;
}

bool CanBeRail(HcaRole role) { return RowOf(role).can_be_rail; }

std::vector<std::string> RailRoleNames() {
  std::vector<std::string> names;
  for (const RoleRow& row : kRoles) {
    if (row.can_be_rail) names.emplace_back(row.name);
  }
  // The most common first.
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace railhead::fabric
