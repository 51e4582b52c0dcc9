// SPDX-License-Identifier: Apache-2.0
#include "fabric/gid_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fabric/gid_table_reader.h"
#include "fabric/hca_netdev.h"
#include "fabric/root_files.h"

namespace railhead::fabric {
namespace {

constexpr char kRoceV2[] = "RoCE v2";
// A table of 256 entries, most of them empty, is read once a second.
constexpr int kMaxUnused = 32;

// Returns the 32 digits of a GID in lower case; "" for any other text.
std::string GidDigits(absl::string_view gid) {
  const std::vector<absl::string_view> groups = absl::StrSplit(gid, ':');
  const bool sound =
      groups.size() == 8 && std::all_of(groups.begin(), groups.end(), [](absl::string_view group) {
        return group.size() == 4 &&
               group.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
      });
  return sound ? absl::StrJoin(groups, "") : "";
}

std::string PortFolder(const std::string& hca, int port) {
  return absl::StrCat("/sys/class/infiniband/", hca, "/ports/", port);
}

std::string Read(const RootFiles& files, const std::string& path) {
  return files.ReadAttribute(path).value_or("");
}

// Returns the indices of a RoCE port's table, ascending; nullopt for another port, or if the table
// cannot be read.
std::optional<std::vector<int>> Places(const RootFiles& files, const std::string& hca,
                                       const std::string& folder) {
  // An iWARP adapter is "4: RNIC" and has no GIDs in this sense.
  if (Read(files, folder + "/link_layer") != "Ethernet" ||
      !absl::StartsWith(Read(files, absl::StrCat("/sys/class/infiniband/", hca, "/node_type")),
                        "1:")) {
    return std::nullopt;
  }
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder + "/gid_attrs/types");
  if (!names.ok()) return std::nullopt;
  std::vector<int> places;
  for (const std::string& name : *names) {
    int place = 0;
    if (absl::SimpleAtoi(name, &place) && place >= 0) places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<GidEntry> ReadEntries(const RootFiles& files, const std::string& folder,
                                  const std::vector<int>& places) {
  std::vector<GidEntry> entries;
  int unused = 0;
  for (const int place : places) {
    // The type of an unused entry cannot be read.
    GidEntry entry{place, Read(files, absl::StrCat(folder, "/gid_attrs/types/", place)), "", ""};
    if (entry.type.empty()) {
      if (++unused == kMaxUnused) break;
      continue;
    }
    unused = 0;
    entry.gid = Read(files, absl::StrCat(folder, "/gids/", place));
    entry.netdev = Read(files, absl::StrCat(folder, "/gid_attrs/ndevs/", place));
    if (!IsSaneName(entry.netdev)) entry.netdev.clear();
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

absl::string_view ToString(AddressKind address) {
  switch (address) {
    case AddressKind::kNone:
      return "none";
    case AddressKind::kLinkLocal:
      return "linkLocal";
    case AddressKind::kRoutable:
      return "routable";
    case AddressKind::kUnknown:
      break;
  }
  return "";
}

AddressKind KindOfGid(absl::string_view gid) {
  const std::string digits = GidDigits(gid);
  if (digits.find_first_not_of('0') == std::string::npos) return AddressKind::kNone;
  // fe80::/10, and 169.254.0.0/16 as ::ffff:a9fe:....
  const absl::string_view top = absl::string_view(digits).substr(0, 3);
  const bool local = top == "fe8" || top == "fe9" || top == "fea" || top == "feb" ||
                     absl::StartsWith(digits, "00000000000000000000ffffa9fe");
  return local ? AddressKind::kLinkLocal : AddressKind::kRoutable;
}

PortAddresses Summarize(const std::vector<GidEntry>& entries,
                        const std::set<std::string>& host_interfaces) {
  PortAddresses addresses;
  addresses.host = AddressKind::kNone;
  for (const GidEntry& entry : entries) {
    const AddressKind kind = entry.type == kRoceV2 ? KindOfGid(entry.gid) : AddressKind::kNone;
    if (kind == AddressKind::kNone) continue;
    const bool of_host = entry.netdev.empty() || host_interfaces.contains(entry.netdev);
    AddressKind& best = of_host ? addresses.host : addresses.pod;
    best = std::max(best, kind);
    if (of_host && kind == AddressKind::kRoutable && addresses.gid.empty()) {
      addresses.gid = entry.gid;
    }
  }
  return addresses;
}

std::vector<GidEntry> ReadGidTable(const RootFiles& files, const std::string& hca, int port) {
  const std::string folder = PortFolder(hca, port);
  return ReadEntries(files, folder, Places(files, hca, folder).value_or(std::vector<int>()));
}

PortAddresses ReadPortAddresses(const RootFiles& files, const std::string& hca, int port) {
  const std::string folder = PortFolder(hca, port);
  const std::optional<std::vector<int>> places = Places(files, hca, folder);
  if (!places.has_value()) return {};
  if (places->empty()) return {AddressKind::kNone, AddressKind::kUnknown, "", /*no_table=*/true};
  const std::vector<GidEntry> entries = ReadEntries(files, folder, *places);
  std::set<std::string> host_interfaces;
  for (const GidEntry& entry : entries) {
    if (!entry.netdev.empty() && files.IsDirectory("/sys/class/net/" + entry.netdev)) {
      host_interfaces.insert(entry.netdev);
    }
  }
  return Summarize(entries, host_interfaces);
}

}  // namespace railhead::fabric
