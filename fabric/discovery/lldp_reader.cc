// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/lldp_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/document_error.h"
#include "base/json/json_text.h"
#include "base/printable_text.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {
namespace {

using Type = JsonValue::Type;

// In json0 everything is a list; in json, single elements are not in a list.
const JsonValue* First(const JsonValue* value) {
  if (value == nullptr || !value->Is(Type::kList)) return value;
  return value->fields.empty() ? nullptr : &value->fields[0].value;
}

// "x", {"value": "x"} or [{"value": "x"}].
const JsonValue* TextIn(const JsonValue* value) {
  value = First(value);
  if (value != nullptr && value->Is(Type::kObject)) value = value->Find("value");
  return value != nullptr && value->Is(Type::kText) ? value : nullptr;
}

std::string TextOf(const JsonValue* value) {
  const JsonValue* text = TextIn(value);
  return text == nullptr ? "" : text->text;
}

// Systems of switches, some of which use lldpd, and systems whose name does not show their purpose
// (Buildroot).
constexpr const char* kSwitchSystems[] = {"Arista",
                                          "Buildroot",
                                          "Cumulus",
                                          "Dell",
                                          "DENT",
                                          "FBOSS",
                                          "Juniper",
                                          "NVOS",
                                          "OcNOS",
                                          "Onyx",
                                          "Open Network Linux",
                                          "OpenSwitch",
                                          "OpenWrt",
                                          "OPX",
                                          "Pica8",
                                          "PicOS",
                                          "Poky",
                                          "SONiC",
                                          "VyOS",
                                          "Wind River"};

// Systems of hosts.
constexpr const char* kDistributions[] = {"Alibaba Cloud Linux",
                                          "AlmaLinux",
                                          "Amazon Linux",
                                          "Anolis OS",
                                          "Arch Linux",
                                          "Azure Linux",
                                          "Bottlerocket",
                                          "CBL-Mariner",
                                          "CentOS",
                                          "Container-Optimized OS",
                                          "Debian GNU",
                                          "EulerOS",
                                          "Fedora",
                                          "Flatcar",
                                          "Garden Linux",
                                          "Huawei Cloud EulerOS",
                                          "Kylin",
                                          "Microsoft Azure Linux",
                                          "NixOS",
                                          "OpenCloudOS",
                                          "openEuler",
                                          "openSUSE",
                                          "Oracle Linux",
                                          "Red Hat",
                                          "Rocky Linux",
                                          "SLES",
                                          "SUSE Linux",
                                          "Talos",
                                          "TencentOS",
                                          "Ubuntu",
                                          "UnionTech OS",
                                          "VMware Photon"};

template <size_t kCount>
bool StartsWithAny(absl::string_view text, const char* const (&names)[kCount]) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* name) { return absl::StartsWithIgnoreCase(text, name); });
}

// Returns whether this is lldpd's default: the system's name and the output of uname ("Debian
// GNU/Linux 12 (bookworm) Linux 6.1.0-13-amd64 #1 SMP ...").
bool IsDefaultOfLldpd(absl::string_view description) {
  constexpr absl::string_view kLinux = " Linux ";
  for (size_t at = description.find(kLinux, 1); at != absl::string_view::npos;
       at = description.find(kLinux, at + 1)) {
    const absl::string_view rest = description.substr(at + kLinux.size());
    const size_t release = std::min(rest.find(' '), rest.size());
    if (release > 0 && absl::ascii_isdigit(static_cast<unsigned char>(rest[0])) &&
        absl::StartsWith(rest.substr(release), " #")) {
      return true;
    }
  }
  return false;
}

// Returns whether the system description is a host's. Switch systems start with their own name,
// even if based on a distribution of hosts ("Cumulus Linux version 5.9", "SONiC Software Version:
// ... Debian"). lldpd can be configured to omit the version: then the distribution's name decides.
bool IsHostSystem(absl::string_view description) {
  if (StartsWithAny(description, kSwitchSystems)) return false;
  return IsDefaultOfLldpd(description) || StartsWithAny(description, kDistributions);
}

// A text of LLDP has 255 bytes at most; names of nodes have 253.
constexpr size_t kMaxWords = 253;

class LldpReader {
 public:
  explicit LldpReader(absl::string_view source) : reader_(source) {}

  absl::StatusOr<Observations> Read(const std::vector<JsonValue>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (const JsonValue* local = texts[i].Find("local-chassis")) {
        const JsonValue* holder = First(local);
        const JsonValue* chassis = holder == nullptr ? nullptr : holder->Find("chassis");
        speaker_ = Chassis(chassis, *local, "local-chassis.chassis");
      } else if (const JsonValue* lldp = texts[i].Find("lldp")) {
        Neighbours(*lldp);
        speaker_.clear();
      } else {
        reader_.Fail(texts[i], "",
                     "is neither \"local-chassis\" nor \"lldp\", which lldpcli -f json prints for "
                     "show chassis and show neighbors details");
      }
      if (!reader_.status().ok()) return reader_.status();
    }
    return std::move(seen_);
  }

 private:
  void Neighbours(const JsonValue& lldp) {
    if (speaker_.empty()) {
      reader_.Fail(
          lldp, "lldp",
          "does not identify the host of these neighbours; put the output of `lldpcli -f json show "
          "chassis` before that of `lldpcli -f json show neighbors details`, in the same file");
      return;
    }
    const JsonValue* holder = First(&lldp);
    const JsonValue* list = holder == nullptr ? nullptr : holder->Find("interface");
    if (list == nullptr) return;  // it has no neighbour
    if (list->Is(Type::kObject)) {
      Interface(*list, "lldp.interface");
    } else if (list->Is(Type::kList)) {
      for (size_t i = 0; i < list->fields.size(); ++i) {
        Interface(list->fields[i].value, absl::StrCat("lldp.interface[", i, "]"));
      }
    } else {
      reader_.Fail(*list, "lldp.interface", "must be a list or an object");
    }
  }

  // json: {"eth0": {...}}; json0: {"name": "eth0", ...}.
  void Interface(const JsonValue& entry, const std::string& path) {
    if (!entry.Is(Type::kObject)) {
      reader_.Fail(entry, path, "must be an object");
      return;
    }
    const JsonValue* name = entry.Find("name");
    if (name != nullptr && name->Is(Type::kText)) {
      Neighbour(entry, reader_.Name(*name, path + ".name"), path);
      return;
    }
    for (const auto& [interface, body] : entry.fields) {
      JsonValue key = body;
      key.type = Type::kText;
      key.text = interface;
      Neighbour(body, reader_.Name(key, path), absl::StrCat(path, ".", ShownText(interface)));
    }
  }

  void Neighbour(const JsonValue& body, const std::string& interface, const std::string& path) {
    if (TextOf(body.Find("via")) != "LLDP") return;
    SeenLink link;
    link.near = {speaker_, interface};
    link.far.device = Chassis(body.Find("chassis"), body, path + ".chassis");
    const JsonValue* port = First(body.Find("port"));
    if (port == nullptr || !port->Is(Type::kObject)) {
      reader_.Fail(body, path + ".port",
                   "is missing; use the output of `lldpcli show neighbors details`");
      return;
    }
    link.far.port = Port(*port, path + ".port");
    const JsonValue* speed = First(port->Find("auto-negotiation"));
    if (speed != nullptr) link.gbps = Gbps(TextOf(speed->Find("current")));
    link.where = absl::StrCat(reader_.source(), ":", body.line);
    // A neighbour without a name or port cannot be identified, so it is ignored.
    if (link.far.device.empty() || link.far.port.empty()) return;
    if (reader_.status().ok()) seen_.links.push_back(std::move(link));
  }

  // The device's id; the device becomes known. json: {"NAME": {"id": ...}}, or without a name as in
  // json0: {"id": ..., "name": ...}.
  std::string Chassis(const JsonValue* chassis, const JsonValue& around, const std::string& path) {
    chassis = First(chassis);
    if (chassis == nullptr || !chassis->Is(Type::kObject)) {
      reader_.Fail(around, path, "is missing");
      return "";
    }
    SeenDevice device;
    device.name = Words(TextIn(chassis->Find("name")));
    if (TextIn(chassis->Find("id")) == nullptr && chassis->fields.size() == 1) {
      device.name = PrintableText(chassis->fields[0].name, kMaxWords);
      chassis = &chassis->fields[0].value;
    }
    const JsonValue* id = First(chassis->Find("id"));
    const JsonValue* value = TextIn(id);
    if (value == nullptr || id == nullptr) {
      reader_.Fail(*chassis, path + ".id", "is missing");
      return "";
    }
    if (value->text.empty()) return "";
    device.id = absl::StrCat("chassis ", Words(TextIn(id->Find("type"))), " ", Words(value));
    device.kind = Kind(chassis->Find("capability"));
    if (device.name.empty() && chassis->Find("capability") == nullptr) {
      device.kind = DeviceKind::kUnknown;
    }
    if (IsHostSystem(TextOf(chassis->Find("descr")))) device.kind = DeviceKind::kHost;
    seen_.devices.push_back(device);
    return device.id;
  }

  static DeviceKind Kind(const JsonValue* capabilities) {
    if (capabilities == nullptr) return DeviceKind::kForwarder;  // simple switches send none
    const auto forwards = [](const JsonValue& capability) {
      const JsonValue* enabled = capability.Find("enabled");
      const std::string type = TextOf(capability.Find("type"));
      return (type == "Bridge" || type == "Router") && enabled != nullptr &&
             enabled->text == "true";
    };
    if (capabilities->Is(Type::kObject)) {
      return forwards(*capabilities) ? DeviceKind::kForwarder : DeviceKind::kHost;
    }
    for (const auto& [unnamed, capability] : capabilities->fields) {
      if (forwards(capability)) return DeviceKind::kForwarder;
    }
    return DeviceKind::kHost;
  }

  // The interface's name. Hosts send its hardware address as the port's id, and the name in words.
  std::string Port(const JsonValue& port, const std::string& path) {
    const JsonValue* id = First(port.Find("id"));
    const JsonValue* value = TextIn(id);
    if (value == nullptr || id == nullptr) {
      reader_.Fail(port, path + ".id", "is missing");
      return "";
    }
    const std::string words = Words(TextIn(port.Find("descr")));
    return TextOf(id->Find("type")) == "mac" && !words.empty() ? words : Words(value);
  }

  // A neighbour can send any bytes: an invalid text affects only itself.
  static std::string Words(const JsonValue* text) {
    return text == nullptr ? "" : PrintableText(text->text, kMaxWords);
  }

  // "100GbaseCR4 - ...", "10GbaseT - ...", "1000BaseTFD - ...".
  static double Gbps(absl::string_view mau) {
    size_t digits = 0;
    while (digits < mau.size() && digits < 6 && absl::ascii_isdigit(mau[digits])) ++digits;
    double number = 0;
    if (!absl::SimpleAtod(mau.substr(0, digits), &number)) return 0;
    mau.remove_prefix(digits);
    const bool giga = absl::ConsumePrefix(&mau, "G");
    const std::string rest = absl::AsciiStrToLower(mau.substr(0, 4));
    if (rest != "base") return 0;
    return giga ? number : number / 1000;
  }

  JsonReader reader_;
  Observations seen_;
  std::string speaker_;  // to which the next neighbours belong
};

}  // namespace

bool IsLldp(const JsonValue& text) {
  return text.Find("lldp") != nullptr || text.Find("local-chassis") != nullptr;
}

absl::StatusOr<Observations> ReadLldp(const std::vector<JsonValue>& texts,
                                      absl::string_view source) {
  return LldpReader(source).Read(texts);
}

}  // namespace railhead::fabric
