// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/config_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/resource_name.h"
#include "device-plugin/config/selector.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/pci_address.h"
#include "fabric/yaml/message.h"
#include "fabric/yaml/scalar.h"

namespace railhead::device_plugin {
namespace {

constexpr size_t kMaxConfigText = size_t{1} << 20;
// Aliases let a small text stand for an enormous one.
constexpr int kMaxValues = 100'000;
constexpr int kMaxNumaNode = 65535;
constexpr int kMaxSlots = 128;

using Names = std::vector<std::string>;
using fabric::ListedTexts;
using fabric::NearestText;
using fabric::QuotedText;
using fabric::ShownText;

bool IsQuoted(const YAML::Node& node) {
  return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
}

// What stands there, as a message says it: "a list", 7, "7".
std::string ShownValue(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Scalar:
      return IsQuoted(node) ? QuotedText(node.Scalar()) : ShownText(node.Scalar());
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      break;
  }
  return "an empty value";
}

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

// Turns one document into a configuration. Remembers the first thing that is wrong; what is read
// after that does not count, so that callers need not ask at each step.
class Reader {
 public:
  explicit Reader(absl::string_view source) : source_(source) {}

  AgentConfig Read(const YAML::Node& document) {
    AgentConfig config;
    if (document.IsNull()) return config;
    const Fields fields =
        Mapping(document, "", {"resources", "rails", "gpuVendors", "ncclTopology"});
    if (const YAML::Node* node = fields.Find("resources")) {
      config.resources.clear();
      ForEach(*node, "resources", kNotEmpty, [&](const YAML::Node& item, const std::string& path) {
        config.resources.push_back(Resource(item, path, config.resources));
        CheckOfferedNames(item, path, config.resources);
      });
    }
    if (const YAML::Node* node = fields.Find("rails")) {
      ForEach(*node, "rails", kMayBeEmpty, [&](const YAML::Node& item, const std::string& path) {
        config.rails.push_back(Rail(item, path, config.rails));
      });
    }
    if (const YAML::Node* node = fields.Find("gpuVendors")) {
      ForEach(*node, "gpuVendors", kMayBeEmpty,
              [&](const YAML::Node& item, const std::string& path) {
                config.gpu_vendors.push_back(PciId(item, path, "8086"));
              });
    }
    if (const YAML::Node* node = fields.Find("ncclTopology")) {
      config.nccl_topology = Switch(*node, "ncclTopology");
    }
    return config;
  }

  const absl::Status& status() const { return status_; }

 private:
  enum Emptiness { kMayBeEmpty, kNotEmpty };

  struct Fields {
    std::map<std::string, YAML::Node> nodes;

    const YAML::Node* Find(const std::string& name) const {
      const auto it = nodes.find(name);
      return it == nodes.end() ? nullptr : &it->second;
    }
  };

  void Fail(const YAML::Node& node, const std::string& path, absl::string_view what) {
    if (status_.ok()) status_ = fabric::YamlError(source_, node.Mark().line + 1, path, what);
  }

  // Counts a value that is visited; false when there is no use in going on.
  bool Visit(const YAML::Node& node, const std::string& path) {
    if (++values_ > kMaxValues) {
      Fail(node, path,
           absl::StrCat("the document holds more than ", kMaxValues,
                        " values, counting what an alias (*) stands for each time; write less"));
    }
    return status_.ok();
  }

  // The fields of a mapping, none of them unknown or there twice.
  Fields Mapping(const YAML::Node& node, const std::string& path, const Names& known) {
    Fields fields;
    if (!node.IsMap()) {
      Fail(node, path,
           absl::StrCat("must be a mapping, not ", ShownValue(node), "; its fields are ",
                        ListedTexts(known, " and ")));
      return fields;
    }
    for (const auto& entry : node) {
      if (!Visit(entry.first, path)) break;
      if (!entry.first.IsScalar()) {
        Fail(entry.first, path,
             absl::StrCat("has a field whose name is ", ShownValue(entry.first),
                          "; its fields are ", ListedTexts(known, " and ")));
        break;
      }
      const std::string& name = entry.first.Scalar();
      const std::string field = absl::StrCat(path, path.empty() ? "" : ".", ShownText(name));
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string meant = NearestText(name, known);
        Fail(entry.first, field,
             meant.empty() ? absl::StrCat("this field is not known; the fields here are ",
                                          ListedTexts(known, " and "))
                           : absl::StrCat("this field is not known; did you mean ", meant, "?"));
      } else if (!fields.nodes.emplace(name, entry.second).second) {
        Fail(entry.first, field, "appears a second time; keep one of the two");
      } else if (entry.second.IsNull()) {
        // Said here because the place of an empty value is the next token, some lines further down.
        Fail(entry.first, field, "has no value; give it one, or leave the field out");
      }
    }
    return fields;
  }

  void ForEach(const YAML::Node& node, const std::string& path, Emptiness emptiness,
               absl::FunctionRef<void(const YAML::Node&, const std::string&)> read) {
    if (!node.IsSequence()) {
      Fail(node, path,
           absl::StrCat("must be a list, not ", ShownValue(node),
                        "; write each entry on a line of its own after a dash, or all in [ ]"));
      return;
    }
    size_t index = 0;
    for (const YAML::Node& item : node) {
      const std::string item_path = absl::StrCat(path, "[", index++, "]");
      if (!Visit(item, item_path)) return;
      read(item, item_path);
    }
    if (index == 0 && emptiness == kNotEmpty) {
      Fail(node, path, "must have at least one entry; leave the field out to take the default");
    }
  }

  std::string Text(const YAML::Node& node, const std::string& path) {
    if (!node.IsScalar()) {
      Fail(node, path, absl::StrCat("must be text, not ", ShownValue(node), "; put it in quotes"));
      return "";
    }
    const std::string& text = node.Scalar();
    if (IsQuoted(node)) return text;
    if (fabric::IsYamlNumber(text) || fabric::IsYamlBoolean(text)) {
      Fail(node, path,
           absl::StrCat("must be text, but without quotes ", ShownText(text), " is a ",
                        fabric::IsYamlNumber(text) ? "number" : "boolean", "; write ",
                        QuotedText(text)));
    }
    return text;
  }

  int Integer(const YAML::Node& node, const std::string& path, int low, int high,
              absl::string_view hint) {
    const bool quoted = node.IsScalar() && IsQuoted(node);
    if (node.IsScalar() && !quoted) {
      if (const auto number = fabric::YamlInteger(node.Scalar(), low, high)) return *number;
    }
    Fail(node, path,
         absl::StrCat("must be a whole number from ", low, " to ", high, ", not ", ShownValue(node),
                      "; ", quoted ? "write it without quotes" : hint));
    return low;
  }

  bool Switch(const YAML::Node& node, const std::string& path) {
    const std::string text = node.IsScalar() && !IsQuoted(node) ? node.Scalar() : "";
    if (text != "true" && text != "false") {
      Fail(node, path, absl::StrCat("must be true or false, not ", ShownValue(node)));
    }
    return text == "true";
  }

  std::string PciId(const YAML::Node& node, const std::string& path, absl::string_view example) {
    const std::string id = Text(node, path);
    if (!IsFourHexDigits(id)) {
      Fail(node, path,
           absl::StrCat(QuotedText(id), " is not four hex digits; write it as lspci -n prints it, ",
                        "such as ", QuotedText(example)));
    }
    return absl::AsciiStrToLower(id);
  }

  std::string PciAddress(const YAML::Node& node, const std::string& path, bool wildcards) {
    std::string address = absl::AsciiStrToLower(Text(node, path));
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

  // The name of a device, a driver or an interface. A name with other characters can be selected
  // with a '?' for each of them; what is more likely is a regular expression.
  std::string Name(const YAML::Node& node, const std::string& path, bool wildcards) {
    std::string name = Text(node, path);
    if (!HoldsOnly(name, wildcards ? "_-.:*?" : "_-.:")) {
      Fail(node, path,
           absl::StrCat(QuotedText(name), " is not a name; use letters, digits, _ - . and :",
                        wildcards ? ", with * for any text and ? for any one character"
                                  : " (no wildcards here)"));
    }
    return name;
  }

  // One of a few words.
  std::string Word(const YAML::Node& node, const std::string& path, absl::string_view what,
                   const Names& words) {
    std::string word = Text(node, path);
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      const std::string meant = NearestText(word, words);
      Fail(node, path,
           absl::StrCat(QuotedText(word), " is not ", what, "; ",
                        meant.empty() ? absl::StrCat("write ", ListedTexts(words, " or "))
                                      : absl::StrCat("did you mean ", meant, "?")));
    }
    return word;
  }

  Selector ReadSelector(const YAML::Node& node, const std::string& path) {
    Selector selector;
    const Fields fields = Mapping(node, path,
                                  {"names", "vendors", "devices", "drivers", "interfaces",
                                   "linkLayers", "pciAddresses", "rails", "numaNodes", "roles"});
    const auto read = [&](const char* name, auto& list, auto entry) {
      const YAML::Node* const field = fields.Find(name);
      if (field == nullptr) return;
      ForEach(*field, absl::StrCat(path, ".", name), kNotEmpty,
              [&](const YAML::Node& item, const std::string& item_path) {
                list.push_back(entry(item, item_path));
              });
    };
    using Node = YAML::Node;
    using Path = std::string;
    const auto pattern = [this](const Node& n, const Path& p) { return Name(n, p, true); };
    const auto name = [this](const Node& n, const Path& p) { return Name(n, p, false); };
    read("names", selector.names, pattern);
    read("vendors", selector.vendors,
         [this](const Node& n, const Path& p) { return PciId(n, p, "15b3"); });
    read("devices", selector.devices,
         [this](const Node& n, const Path& p) { return PciId(n, p, "1021"); });
    read("drivers", selector.drivers, name);
    read("interfaces", selector.interfaces, pattern);
    read("linkLayers", selector.link_layers, [this](const Node& n, const Path& p) {
      return Word(n, p, "a link layer", {"InfiniBand", "Ethernet"});
    });
    read("pciAddresses", selector.pci_addresses,
         [this](const Node& n, const Path& p) { return PciAddress(n, p, true); });
    read("rails", selector.rails, [this](const Node& n, const Path& p) {
      return Integer(n, p, 0, fabric::kHighestRail, "it is the rail's position on the node");
    });
    read("numaNodes", selector.numa_nodes, [this](const Node& n, const Path& p) {
      return Integer(n, p, 0, kMaxNumaNode, "lscpu lists the NUMA nodes");
    });
    read("roles", selector.roles, [this](const Node& n, const Path& p) {
      return Word(n, p, "a role that can be a rail", fabric::RailRoleNames());
    });
    if (fields.nodes.empty()) {
      Fail(node, path,
           "has no fields, so it would match every HCA; say what to match, or leave selectors out "
           "for every HCA that no other resource takes");
    }
    return selector;
  }

  ResourceConfig Resource(const YAML::Node& node, const std::string& path,
                          const std::vector<ResourceConfig>& before) {
    ResourceConfig resource;
    const Fields fields = Mapping(node, path,
                                  {"name", "selectors", "slots", "perRail", "allHcas", "deviceIds",
                                   "network", "moveInterfaces"});
    if (const YAML::Node* name = fields.Find("name")) {
      const std::string name_path = path + ".name";
      resource.name = Text(*name, name_path);
      if (!CheckResourceName(resource.name).ok()) {
        Fail(*name, name_path,
             absl::StrCat(QuotedText(resource.name),
                          " is not a name that kubelet takes; write domain/name, such as "
                          "rdma/hca, and not in kubernetes.io"));
      }
      const auto [same, is_new] = resource_names_.emplace(resource.name, before.size());
      if (!is_new) {
        Fail(*name, name_path,
             absl::StrCat(QuotedText(resource.name), " is the name of resources[", same->second,
                          "] already; give each resource a name of its own"));
      }
    } else {
      Fail(node, path, "has no name; add one, such as name: rdma/hca");
    }
    if (const YAML::Node* selectors = fields.Find("selectors")) {
      ForEach(*selectors, path + ".selectors", kNotEmpty,
              [&](const YAML::Node& item, const std::string& item_path) {
                resource.selectors.push_back(ReadSelector(item, item_path));
              });
    } else {
      for (size_t i = 0; i < before.size(); ++i) {
        if (!before[i].selectors.empty()) continue;
        Fail(node, path,
             absl::StrCat("has no selectors, and neither has resources[", i,
                          "]; only one resource can take what the others leave, so add selectors "
                          "to one of the two"));
      }
    }
    if (const YAML::Node* slots = fields.Find("slots")) {
      resource.slots = Integer(*slots, path + ".slots", 1, kMaxSlots,
                               "it says how many containers may share each HCA");
    }
    if (const YAML::Node* per_rail = fields.Find("perRail")) {
      resource.per_rail = Switch(*per_rail, path + ".perRail");
      const std::string longest = OfferedName(resource, fabric::kHighestRail);
      if (!CheckResourceName(longest).ok()) {
        Fail(*per_rail, path + ".perRail",
             absl::StrCat("offers names such as ", QuotedText(longest),
                          ", which kubelet does not take; give the resource a shorter name"));
      }
    }
    if (const YAML::Node* all = fields.Find("allHcas")) {
      resource.all_hcas = Switch(*all, path + ".allHcas");
      if (resource.all_hcas && resource.per_rail) {
        Fail(*all, path + ".allHcas",
             "one device cannot be all HCAs and one rail; leave allHcas or perRail out");
      }
    }
    if (const YAML::Node* ids = fields.Find("deviceIds")) {
      const std::string ids_path = path + ".deviceIds";
      const bool pci =
          Word(*ids, ids_path, "a form of ids", {"name", "pciAddress"}) == "pciAddress";
      resource.device_ids = pci ? DeviceIds::kPciAddress : DeviceIds::kName;
      if (pci && resource.slots > 1) {
        Fail(*ids, ids_path,
             "a PCI address cannot name a share of an HCA; leave slots or deviceIds out");
      } else if (pci && resource.all_hcas) {
        Fail(*ids, ids_path, "a PCI address names one HCA; leave allHcas or deviceIds out");
      }
    }
    if (const YAML::Node* network = fields.Find("network")) {
      const std::string word =
          Word(*network, path + ".network", "a network", {"host", "attached", "moved"});
      resource.network = word == "moved"      ? fabric::PodNetwork::kMoved
                         : word == "attached" ? fabric::PodNetwork::kAttached
                                              : fabric::PodNetwork::kHost;
    }
    if (const YAML::Node* move = fields.Find("moveInterfaces")) {
      const std::string move_path = path + ".moveInterfaces";
      resource.move_interfaces = Switch(*move, move_path);
      if (resource.move_interfaces &&
          (resource.network != fabric::PodNetwork::kMoved || resource.slots > 1)) {
        Fail(*move, move_path,
             "an interface can be in one pod at a time, and is then not the host's; write "
             "network: moved, and leave slots out");
      }
    }
    return resource;
  }

  // The last of `resources` must not offer what one before it offers.
  void CheckOfferedNames(const YAML::Node& node, const std::string& path,
                         const std::vector<ResourceConfig>& resources) {
    const ResourceConfig& last = resources.back();
    for (size_t i = 0; i + 1 < resources.size(); ++i) {
      for (int rail = 0; rail <= fabric::kHighestRail; ++rail) {
        const ResourceConfig& other = resources[i];
        if (last.name == other.name || last.per_rail == other.per_rail) continue;
        if (OfferedName(last, rail) != OfferedName(other, rail)) continue;
        Fail(node, path + ".name",
             absl::StrCat(QuotedText(OfferedName(last, rail)), " is offered by resources[", i,
                          "] already; give each resource a name of its own"));
        return;
      }
    }
  }

  RailEntry Rail(const YAML::Node& node, const std::string& path,
                 const std::vector<RailEntry>& before) {
    RailEntry entry;
    const Fields fields = Mapping(node, path, {"rail", "interface", "pciAddress", "name"});
    if (const YAML::Node* rail = fields.Find("rail")) {
      entry.rail = Integer(*rail, path + ".rail", 0, fabric::kHighestRail,
                           "it is the rail's position on the node");
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i].rail != entry.rail) continue;
        Fail(*rail, path + ".rail",
             absl::StrCat(entry.rail, " is the rail of rails[", i,
                          "] already; give each entry a rail of its own"));
      }
    } else {
      Fail(node, path, "has no rail; add its number, such as rail: 0");
    }
    int devices = 0;
    const auto read = [&](const char* name, std::string RailEntry::*member, auto text) {
      const YAML::Node* const field = fields.Find(name);
      if (field == nullptr) return;
      ++devices;
      const std::string field_path = absl::StrCat(path, ".", name);
      entry.*member = text(*field, field_path);
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i].*member != entry.*member) continue;
        Fail(*field, field_path,
             absl::StrCat(QuotedText(entry.*member), " has a rail by rails[", i,
                          "] already; keep one of the two entries"));
      }
    };
    const auto name = [this](const YAML::Node& n, const std::string& p) {
      return Name(n, p, false);
    };
    read("interface", &RailEntry::interface, name);
    read("pciAddress", &RailEntry::pci_address,
         [this](const YAML::Node& n, const std::string& p) { return PciAddress(n, p, false); });
    read("name", &RailEntry::name, name);
    if (devices != 1) {
      Fail(node, path,
           absl::StrCat(devices == 0 ? "does not say which HCA it is for"
                                     : "says more than once which HCA it is for",
                        "; give exactly one of interface, pciAddress and name"));
    }
    return entry;
  }

  absl::string_view source_;
  absl::Status status_;
  int values_ = 0;
  std::map<std::string, size_t> resource_names_;  // the index of each
};

// Where the second document begins, if there is one. YAML::LoadAll does not tell: it stops at the
// first document that is empty.
class DocumentCounter : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++count_ == 2) line_of_second_ = mark.line + 1;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int count() const { return count_; }
  int line_of_second() const { return line_of_second_; }

 private:
  int count_ = 0;
  int line_of_second_ = 0;
};

}  // namespace

absl::StatusOr<AgentConfig> ParseAgentConfig(absl::string_view yaml, absl::string_view source) {
  if (yaml.size() > kMaxConfigText) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": the document has more than the ",
                                                   kMaxConfigText, " bytes that are allowed"));
  }
  if (const auto found = fabric::ControlCharacter(yaml)) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":", found->line, ": the document ", found->what));
  }
  try {
    const std::string text(yaml);
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentCounter documents;
    while (documents.count() < 2 && parser.HandleNextDocument(documents)) {
    }
    if (documents.count() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ":", documents.line_of_second(),
                       ": a second document begins; keep one, and remove what follows its ---"));
    }
    Reader reader(source);
    AgentConfig config = reader.Read(YAML::Load(text));
    if (!reader.status().ok()) return reader.status();
    return config;
  } catch (const YAML::DeepRecursion& error) {  // whose own text speaks of a bad file
    return absl::InvalidArgumentError(absl::StrCat(
        source, ":", error.mark.line + 1,
        ": the document nests hundreds of levels deep; look for brackets that are not closed"));
  } catch (const YAML::Exception& error) {  // yaml-cpp reports every defect by throwing
    return absl::InvalidArgumentError(absl::StrCat(
        source, ":", error.mark.line + 1, ": the document is not YAML: ", ShownText(error.msg),
        "; check the indentation, and put texts with special characters in quotes"));
  }
}

absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info = {};
  absl::Status status;
  std::string text(kMaxConfigText + 1, '\0');
  size_t size = 0;
  if (fstat(fd, &info) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot examine ", path));
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file; name the YAML file of the configuration"));
  }
  while (status.ok() && size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  close(fd);
  if (!status.ok()) return status;
  return ParseAgentConfig(absl::string_view(text.data(), size), path);
}

}  // namespace railhead::device_plugin
