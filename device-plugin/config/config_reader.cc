// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/config_reader.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/file.h"
#include "base/yaml/document.h"
#include "base/yaml/reader.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/resource_name.h"
#include "device-plugin/config/selector.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/pci_address.h"

namespace railhead::device_plugin {
namespace {

constexpr size_t kMaxConfigText = size_t{1} << 20;
// With aliases, a small text can expand to a very large one.
constexpr int kMaxValues = 100'000;
constexpr int kMaxNumaNode = 65535;
constexpr int kMaxSlots = 128;

using Names = std::vector<std::string>;

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool HoldsOnly(absl::string_view text, absl::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [others](char c) {
    return IsAlnum(c) || others.find(c) != absl::string_view::npos;
  });
}

bool IsFourHexDigits(absl::string_view text) {
  return text.size() == 4 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

// Turns one document into a configuration.
class Reader : public YamlReader {
 public:
  explicit Reader(absl::string_view source) : YamlReader(source, kMaxValues) {}

  AgentConfig Read(Value document) {
    AgentConfig config;
    if (document.type() == YamlDocument::Type::kNull) return config;
    const Fields fields =
        Mapping(document, "", {"resources", "rails", "gpuVendors", "ncclTopology"});
    if (const std::optional<Value> node = fields.Find("resources")) {
      config.resources.clear();
      ForEachOfSome(*node, "resources", [&](Value item, const std::string& path) {
        config.resources.push_back(Resource(item, path, config.resources));
        CheckOfferedNames(item, path, config.resources);
      });
    }
    if (const std::optional<Value> node = fields.Find("rails")) {
      ForEach(*node, "rails", [&](Value item, const std::string& path) {
        config.rails.push_back(Rail(item, path, config.rails));
      });
    }
    if (const std::optional<Value> node = fields.Find("gpuVendors")) {
      ForEach(*node, "gpuVendors", [&](Value item, const std::string& path) {
        config.gpu_vendors.push_back(PciId(item, path, "8086"));
      });
    }
    if (const std::optional<Value> node = fields.Find("ncclTopology")) {
      config.nccl_topology = Boolean(*node, "ncclTopology");
    }
    return config;
  }

 private:
  std::string PciId(Value node, const std::string& path, absl::string_view example) {
    const std::string id = AnyText(node, path);
    if (!IsFourHexDigits(id)) {
      Fail(node, path,
           absl::StrCat(QuotedText(id), " is not four hex digits; write it as lspci -n prints it, ",
                        "such as ", QuotedText(example)));
    }
    return absl::AsciiStrToLower(id);
  }

  std::string PciAddress(Value node, const std::string& path, bool wildcards) {
    std::string address = absl::AsciiStrToLower(AnyText(node, path));
    const bool is_pattern = wildcards && address.find_first_of("*?") != std::string::npos &&
                            address.find_first_not_of("0123456789abcdef:.*?") == std::string::npos;
    if (!is_pattern && !fabric::ParsePciAddress(address)) {
      Fail(node, path,
           absl::StrCat(QuotedText(address),
                        " is not a PCI address; write domain:bus:device.function as lspci -D ",
                        "prints it, such as \"0000:18:00.0\"",
                        wildcards ? " or \"0000:18:*\"" : ""));
    }
    return address;
  }

  // Reads the name of a device, a driver or an interface. Other characters are more likely a
  // regular expression; a name with such characters can be selected with a '?' for each.
  std::string Name(Value node, const std::string& path, bool wildcards) {
    std::string name = AnyText(node, path);
    if (!HoldsOnly(name, wildcards ? "_-.:*?" : "_-.:")) {
      Fail(node, path,
           absl::StrCat(QuotedText(name), " is not a name; use letters, digits, _ - . and :",
                        wildcards ? ", with * for any text and ? for any one character"
                                  : " (no wildcards here)"));
    }
    return name;
  }

  // Reads one of a few words.
  std::string Word(Value node, const std::string& path, absl::string_view what,
                   const Names& words) {
    std::string word = AnyText(node, path);
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      const std::string meant = NearestText(word, words);
      Fail(node, path,
           absl::StrCat(QuotedText(word), " is not ", what, "; ",
                        meant.empty() ? absl::StrCat("write ", ListedTexts(words, " or "))
                                      : absl::StrCat("did you mean ", meant, "?")));
    }
    return word;
  }

  Selector ReadSelector(Value node, const std::string& path) {
    Selector selector;
    const Fields fields = Mapping(node, path,
                                  {"names", "vendors", "devices", "drivers", "interfaces",
                                   "linkLayers", "pciAddresses", "rails", "numaNodes", "roles"});
    const auto read = [&](const char* name, auto& list, auto entry) {
      const std::optional<Value> field = fields.Find(name);
      if (!field) return;
      ForEachOfSome(*field, absl::StrCat(path, ".", name),
                    [&](Value item, const std::string& item_path) {
                      list.push_back(entry(item, item_path));
                    });
    };
    using Path = std::string;
    const auto pattern = [this](Value n, const Path& p) { return Name(n, p, true); };
    const auto name = [this](Value n, const Path& p) { return Name(n, p, false); };
    read("names", selector.names, pattern);
    read("vendors", selector.vendors,
         [this](Value n, const Path& p) { return PciId(n, p, "15b3"); });
    read("devices", selector.devices,
         [this](Value n, const Path& p) { return PciId(n, p, "1021"); });
    read("drivers", selector.drivers, name);
    read("interfaces", selector.interfaces, pattern);
    read("linkLayers", selector.link_layers, [this](Value n, const Path& p) {
      return Word(n, p, "a link layer", {"InfiniBand", "Ethernet"});
    });
    read("pciAddresses", selector.pci_addresses,
         [this](Value n, const Path& p) { return PciAddress(n, p, true); });
    read("rails", selector.rails, [this](Value n, const Path& p) {
      return Integer(n, p, 0, fabric::kHighestRail, "it is the rail's position on the node");
    });
    read("numaNodes", selector.numa_nodes, [this](Value n, const Path& p) {
      return Integer(n, p, 0, kMaxNumaNode, "lscpu lists the NUMA nodes");
    });
    read("roles", selector.roles, [this](Value n, const Path& p) {
      return Word(n, p, "a role that can be a rail", fabric::RailRoleNames());
    });
    if (fields.all().empty()) {
      Fail(node, path,
           "has no fields, so it would match every HCA; add a field, or omit selectors to get "
           "every HCA that no other resource selects");
    }
    return selector;
  }

  ResourceConfig Resource(Value node, const std::string& path,
                          const std::vector<ResourceConfig>& before) {
    ResourceConfig resource;
    const Fields fields = Mapping(node, path,
                                  {"name", "selectors", "slots", "perRail", "allHcas", "deviceIds",
                                   "network", "moveInterfaces"});
    if (const std::optional<Value> name = fields.Find("name")) {
      const std::string name_path = path + ".name";
      resource.name = AnyText(*name, name_path);
      if (!CheckResourceName(resource.name).ok()) {
        Fail(*name, name_path,
             absl::StrCat(QuotedText(resource.name),
                          " is not a name that kubelet accepts; write domain/name, such as "
                          "rdma/hca, and not in kubernetes.io"));
      }
      const auto [same, is_new] = resource_names_.emplace(resource.name, before.size());
      if (!is_new) {
        Fail(*name, name_path,
             absl::StrCat(QuotedText(resource.name), " is already the name of resources[",
                          same->second, "]; give each resource a unique name"));
      }
    } else {
      Fail(node, path, "has no name; add one, such as name: rdma/hca");
    }
    if (const std::optional<Value> selectors = fields.Find("selectors")) {
      ForEachOfSome(*selectors, path + ".selectors", [&](Value item, const std::string& item_path) {
        resource.selectors.push_back(ReadSelector(item, item_path));
      });
    } else {
      for (size_t i = 0; i < before.size(); ++i) {
        if (!before[i].selectors.empty()) continue;
        Fail(node, path,
             absl::StrCat("has no selectors, like resources[", i,
                          "]; only one resource can get the remaining HCAs, so add selectors to "
                          "one of them"));
      }
    }
    if (const std::optional<Value> slots = fields.Find("slots")) {
      resource.slots = Integer(*slots, path + ".slots", 1, kMaxSlots,
                               "it is the number of containers that can share each HCA");
    }
    if (const std::optional<Value> per_rail = fields.Find("perRail")) {
      resource.per_rail = Boolean(*per_rail, path + ".perRail");
      const std::string longest = OfferedName(resource, fabric::kHighestRail);
      if (!CheckResourceName(longest).ok()) {
        Fail(*per_rail, path + ".perRail",
             absl::StrCat("offers names such as ", QuotedText(longest),
                          ", which kubelet does not accept; give the resource a shorter name"));
      }
    }
    if (const std::optional<Value> all = fields.Find("allHcas")) {
      resource.all_hcas = Boolean(*all, path + ".allHcas");
      if (resource.all_hcas && resource.per_rail) {
        Fail(*all, path + ".allHcas",
             "one device cannot be all HCAs and one rail; remove allHcas or perRail");
      }
    }
    if (const std::optional<Value> ids = fields.Find("deviceIds")) {
      const std::string ids_path = path + ".deviceIds";
      const bool pci =
          Word(*ids, ids_path, "a form of ids", {"name", "pciAddress"}) == "pciAddress";
      resource.device_ids = pci ? DeviceIds::kPciAddress : DeviceIds::kName;
      if (pci && resource.slots > 1) {
        Fail(*ids, ids_path,
             "a PCI address cannot identify a share of an HCA; remove slots or deviceIds");
      } else if (pci && resource.all_hcas) {
        Fail(*ids, ids_path, "a PCI address identifies one HCA; remove allHcas or deviceIds");
      }
    }
    if (const std::optional<Value> network = fields.Find("network")) {
      const std::string word =
          Word(*network, path + ".network", "a network", {"host", "attached", "moved"});
      resource.network = word == "moved"      ? fabric::PodNetwork::kMoved
                         : word == "attached" ? fabric::PodNetwork::kAttached
                                              : fabric::PodNetwork::kHost;
    }
    if (const std::optional<Value> move = fields.Find("moveInterfaces")) {
      const std::string move_path = path + ".moveInterfaces";
      resource.move_interfaces = Boolean(*move, move_path);
      if (resource.move_interfaces &&
          (resource.network != fabric::PodNetwork::kMoved || resource.slots > 1)) {
        Fail(*move, move_path,
             "an interface can be in only one pod at a time, and then leaves the host; write "
             "network: moved, and remove slots");
      }
    }
    return resource;
  }

  // The last of `resources` must not offer what one before it offers.
  void CheckOfferedNames(Value node, const std::string& path,
                         const std::vector<ResourceConfig>& resources) {
    const ResourceConfig& last = resources.back();
    for (size_t i = 0; i + 1 < resources.size(); ++i) {
      for (int rail = 0; rail <= fabric::kHighestRail; ++rail) {
        const ResourceConfig& other = resources[i];
        if (last.name == other.name || last.per_rail == other.per_rail) continue;
        if (OfferedName(last, rail) != OfferedName(other, rail)) continue;
        Fail(node, path + ".name",
             absl::StrCat(QuotedText(OfferedName(last, rail)), " is already offered by resources[",
                          i, "]; give each resource a unique name"));
        return;
      }
    }
  }

  RailEntry Rail(Value node, const std::string& path, const std::vector<RailEntry>& before) {
    RailEntry entry;
    const Fields fields = Mapping(node, path, {"rail", "interface", "pciAddress", "name"});
    if (const std::optional<Value> rail = fields.Find("rail")) {
      entry.rail = Integer(*rail, path + ".rail", 0, fabric::kHighestRail,
                           "it is the rail's position on the node");
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i].rail != entry.rail) continue;
        Fail(*rail, path + ".rail",
             absl::StrCat(entry.rail, " is already the rail of rails[", i,
                          "]; give each entry a unique rail"));
      }
    } else {
      Fail(node, path, "has no rail; add its number, such as rail: 0");
    }
    int devices = 0;
    const auto read = [&](const char* name, std::string RailEntry::*member, auto text) {
      const std::optional<Value> field = fields.Find(name);
      if (!field) return;
      ++devices;
      const std::string field_path = absl::StrCat(path, ".", name);
      entry.*member = text(*field, field_path);
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i].*member != entry.*member) continue;
        Fail(*field, field_path,
             absl::StrCat(QuotedText(entry.*member), " already has a rail by rails[", i,
                          "]; remove one of the two entries"));
      }
    };
    const auto name = [this](Value n, const std::string& p) { return Name(n, p, false); };
    read("interface", &RailEntry::interface, name);
    read("pciAddress", &RailEntry::pci_address,
         [this](Value n, const std::string& p) { return PciAddress(n, p, false); });
    read("name", &RailEntry::name, name);
    if (devices != 1) {
      Fail(node, path,
           absl::StrCat(
               devices == 0 ? "does not identify an HCA" : "identifies the HCA more than once",
               "; give exactly one of interface, pciAddress and name"));
    }
    return entry;
  }

  std::map<std::string, size_t> resource_names_;  // the index of each
};

}  // namespace

absl::StatusOr<AgentConfig> ParseAgentConfig(absl::string_view yaml, absl::string_view source) {
  if (yaml.size() > kMaxConfigText) {
    return DocumentError(
        source, 0, "",
        absl::StrCat("has more than the ", kMaxConfigText, " bytes that are allowed"));
  }
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(yaml, source);
  if (!document.ok()) return document.status();
  Reader reader(source);
  AgentConfig config = reader.Read(document->root());
  if (!reader.status().ok()) return reader.status();
  return config;
}

absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxConfigText);
  if (!text.ok()) return text.status();
  return ParseAgentConfig(*text, path);
}

}  // namespace railhead::device_plugin
