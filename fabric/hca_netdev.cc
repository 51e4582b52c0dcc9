// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_netdev.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fabric/hca_role.h"
#include "fabric/root_files.h"

namespace railhead::fabric {
namespace {

std::string Folder(const std::string& hca) { return absl::StrCat("/sys/class/infiniband/", hca); }

// Returns the network interface of a PCI function that belongs to the port. Functions with two
// ports have two interfaces, distinguished by dev_port (counted from 0).
std::string NetdevOfFunction(const RootFiles& files, const std::string& folder, int port) {
  std::vector<std::string> names = files.List(folder).value_or(std::vector<std::string>());
  // In switchdev mode the function also has the representors of its virtual functions.
  const auto own_end =
      std::stable_partition(names.begin(), names.end(), [&files, &folder](const std::string& name) {
        return !IsRepresentorPort(
            files.ReadAttribute(absl::StrCat(folder, "/", name, "/phys_port_name")).value_or(""));
      });
  if (own_end != names.begin()) names.erase(own_end, names.end());
  for (const std::string& name : names) {
    const std::string text =
        files.ReadAttribute(absl::StrCat(folder, "/", name, "/dev_port")).value_or("");
    int dev_port = -1;
    if (absl::SimpleAtoi(text, &dev_port) && dev_port == port - 1) return name;
  }
  return names.empty() ? "" : names.front();
}

constexpr size_t kMacDigits = 12;
constexpr size_t kMaxSlaves = 8;

// Returns the digits of an Ethernet address or of a GID, without separators.
std::string HexDigits(absl::string_view text) {
  std::string digits;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isxdigit(byte)) digits.push_back(absl::ascii_tolower(byte));
  }
  return digits;
}

// Returns the interface of an iWARP device, whose first GID is the interface's Ethernet address and
// zeros.
std::string NetdevOfIwarp(const RootFiles& files, const std::string& hca) {
  if (!absl::StartsWith(files.ReadAttribute(Folder(hca) + "/node_type").value_or(""), "4:")) {
    return "";
  }
  const std::string mac =
      HexDigits(files.ReadAttribute(Folder(hca) + "/ports/1/gids/0").value_or(""))
          .substr(0, kMacDigits);
  if (mac.find_first_not_of('0') == std::string::npos) return "";
  for (const std::string& name :
       files.List("/sys/class/net").value_or(std::vector<std::string>())) {
    const std::string address =
        files.ReadAttribute(absl::StrCat("/sys/class/net/", name, "/address")).value_or("");
    if (IsSaneName(name) && HexDigits(address) == mac) return name;
  }
  return "";
}

}  // namespace

bool IsSaneName(absl::string_view name) {
  return !name.empty() && name.size() < 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
}

std::string ParentNetdev(const RootFiles& files, const std::string& hca) {
  std::string parent = files.ReadAttribute(Folder(hca) + "/parent").value_or("");
  return IsSaneName(parent) ? parent : NetdevOfIwarp(files, hca);
}

std::string NetdevOfPort(const RootFiles& files, const std::string& hca, int port) {
  std::string parent = ParentNetdev(files, hca);
  if (!parent.empty()) return parent;
  // RoCE devices name the interface of each GID.
  std::string gid =
      files.ReadAttribute(absl::StrCat(Folder(hca), "/ports/", port, "/gid_attrs/ndevs/0"))
          .value_or("");
  if (!gid.empty()) return gid;
  return NetdevOfFunction(files, Folder(hca) + "/device/net", port);
}

bool IsSetDown(const RootFiles& files, const std::string& netdev) {
  uint32_t flags = 0;
  return IsSaneName(netdev) &&
         absl::SimpleHexAtoi(
             files.ReadAttribute(absl::StrCat("/sys/class/net/", netdev, "/flags")).value_or(""),
             &flags) &&
         (flags & 1U) == 0;  // IFF_UP
}

std::string PortNameOf(const RootFiles& files, const std::string& netdev) {
  if (!IsSaneName(netdev)) return "";
  return files.ReadAttribute(absl::StrCat("/sys/class/net/", netdev, "/phys_port_name"))
      .value_or("");
}

std::vector<std::string> SlavesOf(const RootFiles& files, const std::string& netdev) {
  if (!IsSaneName(netdev)) return {};
  const std::string text =
      files.ReadAttribute(absl::StrCat("/sys/class/net/", netdev, "/bonding/slaves")).value_or("");
  std::vector<std::string> slaves;
  for (const absl::string_view name : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (IsSaneName(name) && slaves.size() < kMaxSlaves) slaves.emplace_back(name);
  }
  return slaves;
}

}  // namespace railhead::fabric
