// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/attachment.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "fabric/gid_table.h"
#include "fabric/gid_table_reader.h"
#include "fabric/hca_netdev.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_pci.h"

namespace railhead::preflight {
namespace {

using fabric::GidEntry;
using fabric::RootFiles;

constexpr char kHcaClass[] = "/sys/class/infiniband";
constexpr char kRoceV2[] = "RoCE v2";

// Returns the address as sysfs shows its GID: "0000:0000:0000:0000:0000:ffff:c0a8:4007".
std::string SysfsGid(const net::IpAddress& address) {
  std::string bytes = address.Bytes();
  if (address.is_v4()) bytes = std::string(10, '\0') + "\xff\xff" + bytes;
  std::string text;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto high = static_cast<unsigned char>(bytes[i]);
    const auto low = static_cast<unsigned char>(bytes[i + 1]);
    absl::StrAppend(&text, i > 0 ? ":" : "", absl::Hex(high << 8U | low, absl::kZeroPad4));
  }
  return text;
}

bool Has(const std::vector<GidEntry>& table, const net::IpAddress& address) {
  const std::string gid = SysfsGid(address);
  return std::any_of(table.begin(), table.end(),
                     [&gid](const GidEntry& entry) { return entry.gid == gid; });
}

bool HasAny(const std::vector<GidEntry>& table, absl::Span<const net::IpAddress> addresses) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&table](const net::IpAddress& address) { return Has(table, address); });
}

// `netdev`: the HCA's interface on the node, whose VLANs are the node's too.
bool HasNodeGid(const std::vector<GidEntry>& table, const std::string& netdev) {
  return std::any_of(table.begin(), table.end(), [&netdev](const GidEntry& entry) {
    return entry.type == kRoceV2 &&
           (entry.netdev == netdev || absl::StartsWith(entry.netdev, netdev + ".")) &&
           fabric::KindOfGid(entry.gid) == fabric::AddressKind::kRoutable;
  });
}

bool IsHere(const RootFiles& files, const std::string& netdev) {
  return fabric::IsSaneName(netdev) && files.IsDirectory("/sys/class/net/" + netdev);
}

// Returns "mlx5_1 (0000:c1:00.0)".
std::string Named(const RootFiles& files, const std::string& device) {
  const std::optional<fabric::PciFunction> function =
      fabric::FunctionBehind(files, absl::StrCat(kHcaClass, "/", device, "/device"));
  return function.has_value() ? absl::StrCat(device, " (", function->address, ")") : device;
}

// Returns the HCA besides `ours` to which one of the addresses belongs, as a text for people; "" if
// there is none.
std::string Elsewhere(const RootFiles& files, const std::set<std::string>& ours,
                      absl::Span<const net::IpAddress> addresses) {
  for (const std::string& device : files.List(kHcaClass).value_or(std::vector<std::string>())) {
    if (ours.contains(device) || !fabric::IsSaneName(device)) continue;
    for (const std::string& name : files.List(absl::StrCat(kHcaClass, "/", device, "/ports"))
                                       .value_or(std::vector<std::string>())) {
      int port = 0;
      if (!absl::SimpleAtoi(name, &port)) continue;
      const std::vector<GidEntry> table = fabric::ReadGidTable(files, device, port);
      for (const net::IpAddress& address : addresses) {
        if (!Has(table, address)) continue;
        return absl::StrCat(address.ToString(), " is an address of ", Named(files, device));
      }
    }
  }
  return "";
}

}  // namespace

void FindAttachments(const std::string& root, const std::vector<fabric::PodRail>& rails,
                     absl::Span<const net::IpAddress> own, absl::Span<RailFacts> facts) {
  const absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok()) return;
  std::set<std::string> ours;
  std::map<int, std::vector<GidEntry>> tables;  // by rail
  std::map<int, std::string> netdevs;
  std::vector<net::IpAddress> unused(own.begin(), own.end());
  for (const fabric::PodRail& rail : rails) {
    if (!fabric::IsSaneName(rail.device)) continue;
    ours.insert(rail.device);
    const std::vector<GidEntry> table = fabric::ReadGidTable(*files, rail.device, rail.port);
    std::erase_if(unused, [&table](const net::IpAddress& address) { return Has(table, address); });
    netdevs[rail.rail] = rail.netdev;
    tables[rail.rail] = table;
  }
  std::optional<std::string> elsewhere;  // the same for all rails
  for (RailFacts& rail : facts) {
    const std::vector<GidEntry>& table = tables[rail.name.rail];
    const std::string& netdev = netdevs[rail.name.rail];
    if (table.empty() || HasAny(table, own) || IsHere(*files, netdev)) continue;
    if (!elsewhere.has_value()) elsewhere = Elsewhere(*files, ours, unused);
    if (elsewhere->empty()) return;
    rail.attached_elsewhere = *elsewhere;
    rail.has_node_gid = HasNodeGid(table, netdev);
  }
}

}  // namespace railhead::preflight
