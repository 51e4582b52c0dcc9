// SPDX-License-Identifier: Apache-2.0
#include "fabric/sysfs_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/hca_netdev.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_pci.h"

namespace railhead::fabric {
namespace {

constexpr char kHcaClass[] = "/sys/class/infiniband";
constexpr char kVerbsClass[] = "/sys/class/infiniband_verbs";
constexpr char kDevFolder[] = "/dev/infiniband";
constexpr char kUnknown[] = "UNKNOWN";

// The names of an optional directory: absent means empty.
absl::StatusOr<std::vector<std::string>> ListIfPresent(const RootFiles& files,
                                                       absl::string_view path) {
  absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

// The attribute's text, or "" where it is missing or cannot be read.
std::string AttributeOrEmpty(const RootFiles& files, absl::string_view path) {
  return files.ReadAttribute(path).value_or("");
}

// "400 Gb/sec (4X NDR)" -> 400. Zero for anything that is not a plausible rate.
double ParseRate(absl::string_view text) {
  double rate = 0;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.empty() || !absl::SimpleAtod(words[0], &rate)) return 0;
  return rate > 0 && rate < 1e6 ? rate : 0;
}

// "4: ACTIVE" -> "ACTIVE".
std::string ParseState(absl::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos) return kUnknown;
  return std::string(absl::StripAsciiWhitespace(text.substr(colon + 2)));
}

std::vector<HcaPort> ReadPorts(const RootFiles& files, const std::string& folder) {
  std::vector<HcaPort> ports;
  for (const std::string& name : files.List(folder).value_or(std::vector<std::string>())) {
    HcaPort port;
    if (!absl::SimpleAtoi(name, &port.port) || port.port < 1 || port.port > 255) continue;
    const std::string path = absl::StrCat(folder, "/", name);
    port.state = ParseState(AttributeOrEmpty(files, path + "/state"));
    port.link_layer = AttributeOrEmpty(files, path + "/link_layer");
    const std::string phys = ParseState(AttributeOrEmpty(files, path + "/phys_state"));
    port.phys_state = phys == kUnknown ? "" : phys;
    port.rate_gbps = ParseRate(AttributeOrEmpty(files, path + "/rate"));
    ports.push_back(std::move(port));
  }
  std::sort(ports.begin(), ports.end(),
            [](const HcaPort& a, const HcaPort& b) { return a.port < b.port; });
  return ports;
}

// Names of RDMA devices to their uverbs devices ("rxe0" -> {"uverbs0"}).
absl::StatusOr<std::multimap<std::string, std::string>> ReadUverbs(const RootFiles& files) {
  absl::StatusOr<std::vector<std::string>> names = ListIfPresent(files, kVerbsClass);
  if (!names.ok()) return names.status();
  std::multimap<std::string, std::string> uverbs;
  for (const std::string& name : *names) {
    int number = 0;
    absl::string_view digits = name;
    if (!absl::ConsumePrefix(&digits, "uverbs") || !absl::SimpleAtoi(digits, &number)) continue;
    uverbs.emplace(AttributeOrEmpty(files, absl::StrCat(kVerbsClass, "/", name, "/ibdev")), name);
  }
  return uverbs;
}

// Why the node in /dev cannot be used, or "".
std::string CheckDeviceNode(const RootFiles& files, const std::string& uverbs) {
  const std::string path = absl::StrCat(kDevFolder, "/", uverbs);
  const NodeInfo node = files.Stat(path);
  if (node.kind == NodeKind::kMissing) {
    return absl::StrCat(path, " is missing; check that udev runs and that ib_uverbs is loaded");
  }
  if (node.kind == NodeKind::kOther) return path + " is not a character device";
  if (node.kind == NodeKind::kFile) return "";  // a captured tree
  const std::string number = absl::StrCat(node.major, ":", node.minor);
  const std::string expected =
      AttributeOrEmpty(files, absl::StrCat(kVerbsClass, "/", uverbs, "/dev"));
  if (expected.empty() || expected == number) return "";
  return absl::StrCat(path, " is device ", number, " but the kernel says ", expected,
                      "; it was left by an older driver load, let udev make it again");
}

// Whether the interface was set down by its administrator: no cable is to blame.
bool IsSetDown(const RootFiles& files, const std::string& netdev) {
  uint32_t flags = 0;
  return IsSaneName(netdev) &&
         absl::SimpleHexAtoi(
             AttributeOrEmpty(files, absl::StrCat("/sys/class/net/", netdev, "/flags")),
             &flags) &&
         (flags & 1U) == 0;  // IFF_UP
}

// What to do about ports none of which is ACTIVE.
std::string AdviceFor(const RootFiles& files, const std::vector<HcaPort>& ports,
                      const std::string& netdev) {
  const bool waits_for_manager = std::any_of(ports.begin(), ports.end(), [](const HcaPort& port) {
    return port.link_layer == "InfiniBand" && (port.state == "INIT" || port.state == "ARMED");
  });
  if (waits_for_manager) {
    return "its link is up, and no subnet manager has made it active; check that one runs (opensm, "
           "or a switch's) and that it reaches this port";
  }
  if (ports.front().link_layer == "Ethernet" && IsSetDown(files, netdev)) {
    return absl::StrCat("its interface ", netdev, " is set down; set it up: ip link set ", netdev,
                        " up");
  }
  return "check the cable, the switch port and the interface's state";
}

std::string CheckPorts(const RootFiles& files, const std::vector<HcaPort>& ports,
                       const std::string& netdev) {
  if (ports.empty()) return "it has no port";
  std::vector<std::string> states;
  for (const HcaPort& port : ports) {
    if (port.state == "ACTIVE") return "";
    states.push_back(absl::StrCat("port ", port.port, " is ", port.state,
                                  port.phys_state.empty() ? "" : ", its link ", port.phys_state));
  }
  return absl::StrCat("no port is ACTIVE (", absl::StrJoin(states, ", "), "); ",
                      AdviceFor(files, ports, netdev));
}

// Some adapters show more than one RDMA device for a function: beside the NIC itself, planes that
// only its driver uses. Their ports may well be ACTIVE. Why such a device is no NIC, or "".
std::string SideOfAnother(const RootFiles& files, absl::string_view name) {
  int number = 0;
  absl::string_view digits = name;
  if (absl::ConsumePrefix(&digits, "smi") && absl::SimpleAtoi(digits, &number)) {
    return "it is the management side of an adapter with several planes; its data side is another "
           "device";
  }
  if (absl::ConsumeSuffix(&name, "_dma") && files.IsDirectory(absl::StrCat(kHcaClass, "/", name))) {
    return absl::StrCat("it is the Data Direct side of ", name, ", which is the one to use");
  }
  return "";
}

Hca ReadHca(const RootFiles& files, const std::string& name,
            const std::multimap<std::string, std::string>& uverbs) {
  const std::string folder = absl::StrCat(kHcaClass, "/", name);
  Hca hca;
  hca.name = name;
  hca.ports = ReadPorts(files, folder + "/ports");
  const HcaPort* data_port = DataPort(hca);

  // Software devices (rxe) have no device link of their own, but name the interface they run on.
  const std::string parent = ParentNetdev(files, name);
  std::optional<PciFunction> function = FunctionBehind(files, folder + "/device");
  if (!parent.empty() && !function.has_value()) {
    function = FunctionBehind(files, absl::StrCat("/sys/class/net/", parent, "/device"));
    if (function.has_value()) function->part = "soft";
  }
  hca.netdev = NetdevOfPort(files, name, data_port == nullptr ? 1 : data_port->port);
  hca.slaves = SlavesOf(files, hca.netdev);
  if (function.has_value()) {
    hca.pci_address = std::move(function->address);
    hca.numa_node = function->numa_node;
    hca.path = std::move(function->path);
    hca.vendor = std::move(function->vendor);
    hca.device = std::move(function->device);
    hca.driver = std::move(function->driver);
    hca.part = std::move(function->part);
    hca.physical_function = std::move(function->physical_function);
  }

  std::vector<std::string> reasons;
  if (std::string side = SideOfAnother(files, name); !side.empty()) {
    hca.offered = false;
    reasons.push_back(std::move(side));
  }
  if (!IsSaneName(name)) {
    reasons.push_back("its name holds characters other than letters, digits, '_', '-' and '.'");
  }
  if (std::string ports = CheckPorts(files, hca.ports, hca.netdev); !ports.empty()) {
    reasons.push_back(ports);
  }
  const auto [first, last] = uverbs.equal_range(name);
  if (first == last) {
    reasons.push_back(absl::StrCat("no entry of ", kVerbsClass, " names it; load ib_uverbs"));
  }
  for (auto it = first; it != last; ++it) {
    std::string trouble = CheckDeviceNode(files, it->second);
    if (trouble.empty()) {
      hca.char_devices.push_back(absl::StrCat(kDevFolder, "/", it->second));
    } else {
      reasons.push_back(std::move(trouble));
    }
  }
  hca.usable = reasons.empty();
  hca.reason = absl::StrJoin(reasons, "; ");
  return hca;
}

}  // namespace

absl::StatusOr<NodeInventory> ReadInventory(const std::string& root,
                                            const std::vector<std::string>& gpu_vendors) {
  absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok()) return files.status();
  if (!files->IsDirectory("/sys")) {
    return absl::NotFoundError(
        absl::StrCat("root ", root, " holds no sys directory; mount the host's /sys there"));
  }
  absl::StatusOr<std::vector<std::string>> names = ListIfPresent(*files, kHcaClass);
  if (!names.ok()) return names.status();
  absl::StatusOr<std::multimap<std::string, std::string>> uverbs = ReadUverbs(*files);
  if (!uverbs.ok()) return uverbs.status();

  NodeInventory inventory;
  for (const std::string& name : *names) inventory.hcas.push_back(ReadHca(*files, name, *uverbs));
  AssignRails(inventory.hcas);
  inventory.gpus = ReadGpus(*files, gpu_vendors);
  const NodeKind cm = files->Stat(absl::StrCat(kDevFolder, "/rdma_cm")).kind;
  inventory.rdma_cm = cm == NodeKind::kCharDevice || cm == NodeKind::kFile;
  return inventory;
}

}  // namespace railhead::fabric
