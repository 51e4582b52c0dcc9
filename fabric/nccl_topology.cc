// SPDX-License-Identifier: Apache-2.0
#include "fabric/nccl_topology.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/pci_address.h"
#include "fabric/pci_path.h"

namespace railhead::fabric {
namespace {

constexpr uint32_t kBridge = 0x060400;
constexpr uint32_t kDisplay = 0x030200;
constexpr uint32_t kNetwork = 0x020000;

// A PCI function as NCCL sees it.
struct Function {
  std::string address;
  PciAttributes attributes;
  uint32_t pci_class = kBridge;  // if sysfs has no value
  std::string link_speed;
  int link_width = 0;
  std::vector<std::string> hcas;
  std::map<PciAddress, Function> below;
};

using Functions = std::map<PciAddress, Function>;

std::string Escaped(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// "32.0 GT/s PCIe" -> 32.
std::optional<double> GigaTransfers(absl::string_view speed) {
  absl::ConsumeSuffix(&speed, " PCIe");
  double number = 0;
  if (!absl::ConsumeSuffix(&speed, " GT/s") || !absl::SimpleAtod(speed, &number)) {
    return std::nullopt;
  }
  return number;
}

// A link has the speed of its slower end. Empty, or 0, if neither is known; NCCL then uses its
// default speed.
void SetLink(const PciAttributes& down, const PciAttributes& up, Function& function) {
  const std::optional<double> of_down = GigaTransfers(down.max_link_speed);
  const std::optional<double> of_up = GigaTransfers(up.max_link_speed);
  if (of_down.has_value() && (!of_up.has_value() || *of_down <= *of_up)) {
    function.link_speed = down.max_link_speed;
  } else if (of_up.has_value()) {
    function.link_speed = up.max_link_speed;
  }
  const int a = down.max_link_width;
  const int b = up.max_link_width;
  function.link_width = a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

// Returns the function at the end of a path, with the bridges above it that NCCL counts: upstream
// ports of switches, but neither their downstream ports nor the root port. Null if the path does
// not consist of PCI functions.
Function* Place(const PciPath& path, uint32_t pci_class, const PciAttributesMap& known,
                Functions& functions) {
  const auto attributes_of = [&](size_t i) {
    const auto found = known.find(path.functions[i]);
    return found == known.end() ? PciAttributes{} : found->second;
  };
  if (path.functions.empty()) return nullptr;
  const size_t end = path.functions.size() - 1;
  std::vector<size_t> counted;
  for (size_t i = 1; i < end; i += 2) counted.push_back(i);
  counted.push_back(end);
  Functions* level = &functions;
  Function* last = nullptr;
  for (const size_t i : counted) {
    const std::optional<PciAddress> address = ParsePciAddress(path.functions[i]);
    if (!address.has_value()) return nullptr;
    Function& function = (*level)[*address];
    if (function.address.empty()) {
      function.address = absl::AsciiStrToLower(path.functions[i]);
      function.attributes = attributes_of(i);
      SetLink(function.attributes, i == 0 ? PciAttributes{} : attributes_of(i - 1), function);
    }
    level = &function.below;
    last = &function;
  }
  if (last != nullptr) last->pci_class = pci_class;
  return last;
}

void AppendId(absl::string_view name, std::optional<uint32_t> id, std::string& out) {
  if (id.has_value()) absl::StrAppendFormat(&out, " %s=\"0x%04x\"", name, *id);
}

void Append(const Functions& functions, const std::string& indent, std::string& out) {
  for (const auto& [address, function] : functions) {
    const PciAttributes& is = function.attributes;
    absl::StrAppendFormat(&out, "%s<pci busid=\"%s\" class=\"0x%06x\"", indent, function.address,
                          is.pci_class.value_or(function.pci_class));
    AppendId("vendor", is.vendor, out);
    AppendId("device", is.device, out);
    AppendId("subsystem_vendor", is.subsystem_vendor, out);
    AppendId("subsystem_device", is.subsystem_device, out);
    absl::StrAppendFormat(&out, " link_speed=\"%s\" link_width=\"%d\"", function.link_speed,
                          function.link_width);
    if (function.below.empty() && function.hcas.empty()) {
      out += "/>\n";
      continue;
    }
    out += ">\n";
    if (!function.hcas.empty()) {
      absl::StrAppend(&out, indent, "  <nic>\n");
      for (const std::string& name : function.hcas) {
        absl::StrAppend(&out, indent, "    <net name=\"", Escaped(name), "\"/>\n");
      }
      absl::StrAppend(&out, indent, "  </nic>\n");
    }
    Append(function.below, indent + "  ", out);
    absl::StrAppend(&out, indent, "</pci>\n");
  }
}

}  // namespace

std::string NcclTopology(const NodeInventory& inventory, const PciAttributesMap& attributes,
                         const CpuModel& cpu) {
  std::map<int, Functions> nodes;
  for (const Gpu& gpu : inventory.gpus) {
    Place(gpu.path, kDisplay, attributes, nodes[gpu.numa_node]);
  }
  for (const Hca& hca : inventory.hcas) {
    if (!hca.offered || hca.path.functions.empty()) continue;
    Function* function = Place(hca.path, kNetwork, attributes, nodes[hca.numa_node]);
    if (function != nullptr) function->hcas.push_back(hca.name);
  }
  std::string out = "<system version=\"1\">\n";
  for (const auto& [numa_node, functions] : nodes) {
    if (functions.empty()) continue;
    absl::StrAppendFormat(&out, "  <cpu numaid=\"%d\" arch=\"%s\"", numa_node, cpu.arch);
    if (!cpu.vendor.empty()) {
      absl::StrAppendFormat(&out, " vendor=\"%s\" familyid=\"%d\" modelid=\"%d\"",
                            Escaped(cpu.vendor), cpu.family, cpu.model);
    }
    out += ">\n";
    Append(functions, "    ", out);
    out += "  </cpu>\n";
  }
  return out + "</system>\n";
}

}  // namespace railhead::fabric
