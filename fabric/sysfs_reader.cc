// SPDX-License-Identifier: Apache-2.0
#include "fabric/sysfs_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
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
#include "fabric/gid_table.h"
#include "fabric/hca_health.h"
#include "fabric/hca_netdev.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_pci.h"

namespace railhead::fabric {
namespace {

constexpr char kHcaClass[] = "/sys/class/infiniband";
constexpr char kVerbsClass[] = "/sys/class/infiniband_verbs";
constexpr char kDevFolder[] = "/dev/infiniband";
constexpr char kUnknown[] = "UNKNOWN";
constexpr char kHangs[] =
    "reading its files in /sys does not end: its firmware or driver may hang; check dmesg, and "
    "reset the NIC or the node";

// Returns the names in an optional directory; empty if it does not exist.
absl::StatusOr<std::vector<std::string>> ListIfPresent(const RootFiles& files,
                                                       absl::string_view path) {
  absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

// Returns the attribute's text, or "" if it is missing or cannot be read.
std::string AttributeOrEmpty(const RootFiles& files, absl::string_view path) {
  return files.ReadAttribute(path).value_or("");
}

// "400 Gb/sec (4X NDR)" -> 400. Zero if it is not a plausible rate.
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

// Returns why the node in /dev cannot be used, or "".
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
  return absl::StrCat(path, " is device ", number, " but the kernel expects ", expected,
                      "; it is left over from an earlier driver load; let udev recreate it");
}

// Returns whether its vital product data marks it as a manager of NVLink switches: the two ConnectX
// functions of an HGX B200 board that only its fabric manager uses. Reading is slow, as the
// firmware responds; `known` caches the result. An error means: not decided yet.
absl::StatusOr<bool> ManagesSwitch(const RootFiles& files, const Hca& hca, KnownVpd* known) {
  constexpr size_t kMaxVpd = 4096;
  const HcaPort* port = DataPort(hca);
  if (hca.vendor != "15b3" || port == nullptr || port->link_layer != "InfiniBand") return false;
  const std::string path = absl::StrCat("/sys/bus/pci/devices/", hca.pci_address, "/vpd");
  VpdRecord record;
  if (known != nullptr && known->contains(hca.pci_address)) record = known->at(hca.pci_address);
  while (!record.manages_switch.has_value()) {
    const absl::StatusOr<std::string> vpd = files.ReadStart(path, kMaxVpd);
    if (absl::IsNotFound(vpd.status())) return false;
    if (vpd.ok()) {
      record.manages_switch = absl::StrContains(*vpd, "SMDL=SW_MNG");
    } else if (++record.failed_reads == kMaxVpdReads) {
      record.manages_switch = false;
    }
    if (known == nullptr) continue;
    (*known)[hca.pci_address] = record;
    if (!record.manages_switch.has_value()) {
      return absl::Status(vpd.status().code(),
                          absl::StrCat("cannot read the vital product data of ", hca.name,
                                       ", trying again: ", vpd.status().message()));
    }
  }
  return *record.manages_switch;
}

// Evidence of its role from links and names in sysfs.
RoleEvidence EvidenceOf(const RootFiles& files, const Hca& hca, bool on_pci) {
  RoleEvidence seen;
  seen.name = hca.name;
  seen.on_pci = on_pci;
  seen.vendor = hca.vendor;
  seen.device = hca.device;
  seen.part = hca.part;
  seen.physical_function = hca.physical_function;
  absl::string_view main = hca.name;
  seen.has_main_side = absl::ConsumeSuffix(&main, "_dma") && IsSaneName(main) &&
                       files.IsDirectory(absl::StrCat(kHcaClass, "/", main));
  return seen;
}

// Reads its device nodes and their faults.
void ReadDeviceNodes(const RootFiles& files, const std::multimap<std::string, std::string>& uverbs,
                     Hca& hca) {
  std::vector<std::string> troubles;
  const auto [first, last] = uverbs.equal_range(hca.name);
  if (first == last) {
    troubles.push_back(absl::StrCat("no entry of ", kVerbsClass, " names it; load ib_uverbs"));
  }
  for (auto it = first; it != last; ++it) {
    std::string trouble = CheckDeviceNode(files, it->second);
    if (trouble.empty()) {
      hca.char_devices.push_back(absl::StrCat(kDevFolder, "/", it->second));
    } else {
      troubles.push_back(std::move(trouble));
    }
  }
  hca.device_trouble = absl::StrJoin(troubles, "; ");
}

// Facts about an HCA from links, names and PCI attributes, without its firmware.
struct PlacedHca {
  Hca hca;
  bool on_pci = false;  // has its own PCI function
};

PlacedHca ReadPlace(const RootFiles& files, const std::string& name) {
  PlacedHca place;
  Hca& hca = place.hca;
  hca.name = name;
  std::optional<PciFunction> function =
      FunctionBehind(files, absl::StrCat(kHcaClass, "/", name, "/device"));
  place.on_pci = function.has_value();
  if (!place.on_pci) {
    // Software devices (rxe) have no device link of their own, but name the interface they run on.
    hca.netdev = ParentNetdev(files, name);
    if (!hca.netdev.empty()) {
      function = FunctionBehind(files, absl::StrCat("/sys/class/net/", hca.netdev, "/device"));
    }
    if (function.has_value()) function->part = "soft";
  }
  if (function.has_value()) {
    hca.pci_address = std::move(function->address);
    hca.numa_node = function->numa_node;
    hca.path = std::move(function->path);
    hca.vendor = std::move(function->vendor);
    hca.device = std::move(function->device);
    hca.driver = std::move(function->driver);
    hca.part = std::move(function->part);
    hca.physical_function = std::move(function->physical_function);
    hca.orphan = function->orphan;
  }
  return place;
}

// An HCA whose other files cannot be read now. `before`: as read before, or its name alone.
Hca WithoutReading(const RootFiles& files, const std::string& name, const Hca& before) {
  PlacedHca place = ReadPlace(files, name);
  Hca& hca = place.hca;
  hca.role = RoleOf(EvidenceOf(files, hca, place.on_pci));
  const bool same = before.pci_address == hca.pci_address && before.part == hca.part;
  if (same && !before.ports.empty()) hca = before;
  hca.health = {};
  hca.health.Set(Stage::kHang, kHangs);
  return hca;
}

absl::StatusOr<Hca> ReadHca(const RootFiles& files, const std::string& name,
                            const std::multimap<std::string, std::string>& uverbs,
                            KnownVpd* known) {
  PlacedHca place = ReadPlace(files, name);
  Hca& hca = place.hca;
  hca.ports = ReadPorts(files, absl::StrCat(kHcaClass, "/", name, "/ports"));
  const HcaPort* data_port = DataPort(hca);
  hca.netdev = NetdevOfPort(files, name, data_port == nullptr ? 1 : data_port->port);
  hca.slaves = SlavesOf(files, hca.netdev);
  hca.interface_here = IsSaneName(hca.netdev) && files.IsDirectory("/sys/class/net/" + hca.netdev);
  hca.set_down = IsSetDown(files, hca.netdev);
  RoleEvidence seen = EvidenceOf(files, hca, place.on_pci);
  seen.port_name = PortNameOf(files, hca.netdev);
  seen.bond = !hca.slaves.empty();
  if (place.on_pci) {
    const absl::StatusOr<bool> manages = ManagesSwitch(files, hca, known);
    if (!manages.ok()) return manages.status();
    seen.manages_switch = *manages;
  }
  if (data_port != nullptr) {
    PortAddresses addresses = ReadPortAddresses(files, name, data_port->port);
    seen.no_gid_table = addresses.no_table;
    hca.address = addresses.host;
    hca.pod_address = addresses.pod;
    hca.host_gid = std::move(addresses.gid);
  }
  hca.role = RoleOf(seen);
  ReadDeviceNodes(files, uverbs, hca);
  return hca;
}

// Returns true if an HCA that was listed has disappeared: its driver was unloaded, or it moved into
// a pod. Its fields may then lack the PCI function, and it would look like another HCA.
bool IsGone(const RootFiles& files, const std::string& name) {
  return absl::IsNotFound(files.ReadLink(absl::StrCat(kHcaClass, "/", name)).status());
}

}  // namespace

absl::StatusOr<NodeInventory> ReadInventory(const std::string& root,
                                            const std::vector<std::string>& gpu_vendors,
                                            KnownVpd* known,
                                            const std::function<void(const std::string&)>& reading,
                                            const std::map<std::string, Hca>& hanging) {
  absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok()) return files.status();
  const auto check_sys = [&] {
    return files->IsDirectory("/sys")
               ? absl::OkStatus()
               : absl::NotFoundError(absl::StrCat(
                     "root ", root, " has no sys directory; mount the host's /sys there"));
  };
  if (absl::Status there = check_sys(); !there.ok()) return there;
  absl::StatusOr<std::vector<std::string>> names = ListIfPresent(*files, kHcaClass);
  if (!names.ok()) return names.status();
  absl::StatusOr<std::multimap<std::string, std::string>> uverbs = ReadUverbs(*files);
  if (!uverbs.ok()) return uverbs.status();

  NodeInventory inventory;
  absl::Status undecided;
  std::set<std::string> gone;
  for (const std::string& name : *names) {
    const auto before = hanging.find(name);
    if (reading != nullptr) reading(before == hanging.end() ? name : "");
    absl::StatusOr<Hca> hca = before == hanging.end()
                                  ? ReadHca(*files, name, *uverbs, known)
                                  : WithoutReading(*files, name, before->second);
    if (IsGone(*files, name)) {
      gone.insert(name);
      continue;
    }
    undecided.Update(hca.status());
    if (hca.ok()) inventory.hcas.push_back(*std::move(hca));
  }
  std::erase_if(*names, [&gone](const std::string& name) { return gone.contains(name); });
  // After all of them, so that several are decided in as few scans as one.
  if (!undecided.ok()) return undecided;
  if (reading != nullptr) reading("");
  if (known != nullptr) {
    // A card that reappears may be another one.
    std::erase_if(*known, [&inventory](const auto& entry) {
      return std::none_of(inventory.hcas.begin(), inventory.hcas.end(),
                          [&](const Hca& hca) { return hca.pci_address == entry.first; });
    });
  }
  ChooseRails(inventory.hcas, [](const Hca&) { return false; });
  AssignRails(inventory.hcas);
  for (Hca& hca : inventory.hcas) Judge(hca, PodNetwork::kUnknown);
  for (const auto& [name, device] : *uverbs) {
    if (std::binary_search(names->begin(), names->end(), name)) continue;
    if (!name.empty() && CheckDeviceNode(*files, device).empty()) {
      inventory.moved[name].push_back(absl::StrCat(kDevFolder, "/", device));
    }
  }
  inventory.gpus = ReadGpus(*files, gpu_vendors);
  const NodeKind cm = files->Stat(absl::StrCat(kDevFolder, "/rdma_cm")).kind;
  inventory.rdma_cm = cm == NodeKind::kCharDevice || cm == NodeKind::kFile;
  // Without it, HCAs that are there would be gone.
  if (absl::Status there = check_sys(); !there.ok()) return there;
  return inventory;
}

}  // namespace railhead::fabric
