// SPDX-License-Identifier: Apache-2.0
#include "fabric/sysfs_pci.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/inventory.h"
#include "fabric/pci_address.h"
#include "fabric/pci_path.h"
#include "fabric/root_files.h"

namespace railhead::fabric {
namespace {

constexpr char kPciDevices[] = "/sys/bus/pci/devices";

// VGA, 3D and other display controllers, and processing accelerators. Bridges (NVSwitch) and the
// GPUs' own audio functions have other classes.
constexpr std::array<uint32_t, 4> kGpuClasses = {0x0300, 0x0302, 0x0380, 0x1200};

// Returns the longest prefix of a sysfs path that ends in a PCI function, or "".
std::string PciFolderOf(absl::string_view path) {
  std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  while (!parts.empty() && !ParsePciAddress(parts.back()).has_value()) parts.pop_back();
  return absl::StrJoin(parts, "/");
}

std::string BaseName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Returns the target of a link. If a captured tree lacks the target, the link's text still names
// it.
std::string Target(const RootFiles& files, const std::string& link) {
  absl::StatusOr<std::string> target = files.Resolve(link);
  return target.ok() ? *std::move(target) : files.ReadLink(link).value_or("");
}

std::string AttributeOf(const RootFiles& files, const std::string& folder, const char* name) {
  return files.ReadAttribute(absl::StrCat(folder, "/", name)).value_or("");
}

int ReadNumaNode(const RootFiles& files, const std::string& folder) {
  int node = -1;
  const std::string text = files.ReadAttribute(folder + "/numa_node").value_or("");
  return absl::SimpleAtoi(text, &node) && node >= 0 ? node : -1;
}

// "0x15b3" -> "15b3".
std::string ReadId(const RootFiles& files, const std::string& path) {
  const std::optional<uint32_t> id = ReadHex(files, path);
  return id.has_value() && *id <= 0xffff ? absl::StrCat(absl::Hex(*id, absl::kZeroPad4)) : "";
}

// `folder` is the function's directory, which may be incomplete.
PciFunction ReadFunction(const RootFiles& files, const std::string& folder) {
  PciFunction function;
  function.address = BaseName(folder);
  const std::string of_bus = absl::StrCat(kPciDevices, "/", function.address);
  function.numa_node = ReadNumaNode(files, folder);
  if (function.numa_node < 0) function.numa_node = ReadNumaNode(files, of_bus);
  function.path = ParsePciPath(Target(files, of_bus));
  if (function.path.functions.empty()) function.path = ParsePciPath(folder);
  function.vendor = ReadId(files, of_bus + "/vendor");
  function.device = ReadId(files, of_bus + "/device");
  function.driver = BaseName(files.ReadLink(of_bus + "/driver").value_or(""));
  std::string physical = BaseName(files.ReadLink(of_bus + "/physfn").value_or(""));
  if (ParsePciAddress(physical).has_value()) {
    function.orphan = !files.IsDirectory(of_bus + "/physfn") &&
                      !files.IsDirectory(absl::StrCat(kPciDevices, "/", physical));
    function.physical_function = std::move(physical);
  }
  return function;
}

}  // namespace

std::optional<uint32_t> ReadHex(const RootFiles& files, const std::string& path) {
  uint32_t number = 0;
  const std::string text = files.ReadAttribute(path).value_or("");
  if (!absl::SimpleHexAtoi(text, &number)) return std::nullopt;
  return number;
}

std::optional<PciFunction> FunctionBehind(const RootFiles& files, const std::string& device_link) {
  const std::string target = Target(files, device_link);
  const std::string folder = PciFolderOf(target);
  if (folder.empty()) return std::nullopt;
  PciFunction function = ReadFunction(files, folder);
  // The number set by the administrator, which a reload of the driver does not change.
  uint32_t number = 0;
  if (target != folder && absl::SimpleAtoi(AttributeOf(files, target, "sfnum"), &number)) {
    function.part = absl::StrCat("sf", number);
  }
  return function;
}

std::vector<Gpu> ReadGpus(const RootFiles& files, const std::vector<std::string>& vendors) {
  std::vector<std::pair<PciAddress, Gpu>> found;
  for (const std::string& name : files.List(kPciDevices).value_or(std::vector<std::string>())) {
    const std::optional<PciAddress> address = ParsePciAddress(name);
    if (!address.has_value()) continue;
    const std::string folder = absl::StrCat(kPciDevices, "/", name);
    const uint32_t pci_class = ReadHex(files, folder + "/class").value_or(0) >> 8;
    if (std::find(kGpuClasses.begin(), kGpuClasses.end(), pci_class) == kGpuClasses.end()) continue;
    PciFunction function = ReadFunction(files, folder);
    if (std::find(vendors.begin(), vendors.end(), function.vendor) == vendors.end()) continue;
    // A virtual function of a GPU that is also listed.
    if (!function.physical_function.empty()) continue;
    found.emplace_back(*address, Gpu{std::move(function.vendor), name, function.numa_node,
                                     std::move(function.path)});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Gpu> gpus;
  gpus.reserve(found.size());
  for (auto& [address, gpu] : found) gpus.push_back(std::move(gpu));
  return gpus;
}

}  // namespace railhead::fabric
