// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/rail_map.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/gid_table.h"
#include "fabric/hca_health.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/natural_order.h"
#include "fabric/pci_address.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMapApiVersion[] = "railhead.io/v1alpha1";
constexpr char kMapKind[] = "RailMap";
constexpr size_t kMaxMapText = size_t{1} << 20;
constexpr size_t kMaxMapHcas = 1024;
constexpr int kMaxMapNumaNode = 65535;
constexpr char kVanished[] =
    "the device has disappeared from /sys/class/infiniband; check that its driver is loaded and "
    "that the card responds on PCI; if it was removed permanently, delete rail-map.json in the "
    "directory railhead of kubelet's device-plugins and restart the node agent";

void MarkMissing(fabric::Hca& hca) {
  hca.present = false;
  hca.health.Set(fabric::Stage::kMissing, kVanished);
}

// Devices with the same place are distinguished only by their names.
std::string PlaceOf(const fabric::Hca& hca) {
  if (!hca.pci_address.empty()) return absl::StrCat(hca.pci_address, "/", hca.part);
  return hca.netdev.empty() ? absl::StrCat("name ", hca.name)
                            : absl::StrCat("interface ", hca.netdev);
}

// Matches one scan of the node with the stored map.
class Recognition {
 public:
  Recognition(const Holdings& holdings, RailMap& map, fabric::NodeInventory& inventory)
      : complete_(holdings.complete),
        held_(HeldHcas(holdings)),
        map_(map),
        inventory_(inventory),
        known_of_(inventory.hcas.size()),
        found_(map.hcas.size(), false) {}

  void Run() {
    ChooseAmongSharers();
    MatchNames();
    MatchPlaces();
    Settle();
    Number();
    Doubt();
    NoteSeveral();
    map_.hcas.clear();
    for (fabric::Hca& hca : inventory_.hcas) {
      if (!hca.offered) continue;
      map_.hcas.push_back(hca);
      Forget(map_.hcas.back());
    }
  }

 private:
  // Clears the fields of an HCA that are not stored: its health and device nodes.
  static void Forget(fabric::Hca& hca) {
    for (fabric::HcaPort& port : hca.ports) {
      port.state = "UNKNOWN";
      port.phys_state.clear();
    }
    hca.path = {};
    hca.char_devices.clear();
    hca.interface_here = false;
    hca.set_down = false;
    hca.address = fabric::AddressKind::kUnknown;
    hca.pod_address = fabric::AddressKind::kUnknown;
    hca.host_gid.clear();
    hca.device_trouble.clear();
    hca.move_interface = false;
    hca.health = {};
    MarkMissing(hca);
  }

  bool Known(const std::string& id) const {
    return std::any_of(map_.hcas.begin(), map_.hcas.end(),
                       [&id](const fabric::Hca& hca) { return hca.id == id; });
  }

  // Returns whether a container has it, under any id.
  bool Held(const fabric::Hca& hca) const {
    return held_.contains(hca.id) || held_.contains(kAllHcas) ||
           (!hca.pci_address.empty() &&
            std::any_of(held_.begin(), held_.end(), [&](const std::string& id) {
              return PciAddressIn(id) == hca.pci_address && !Known(id);
            }));
  }
  bool MayBeHeld(const fabric::Hca& hca) const { return !complete_ || Held(hca); }
  bool AnyMayBeHeldAt(const std::string& place) const {
    return std::any_of(map_.hcas.begin(), map_.hcas.end(), [&](const fabric::Hca& known) {
      return PlaceOf(known) == place && MayBeHeld(known);
    });
  }

  // Returns the HCA that is the rail in place of this one and that the host does not see, as a pod
  // may have it.
  std::string ChosenInAPod(const fabric::Hca& hca) const {
    for (const fabric::Hca& known : map_.hcas) {
      if (!known.chosen || fabric::OwnerOf(known) != hca.pci_address || !MayBeHeld(known)) continue;
      const bool is_here = std::any_of(
          inventory_.hcas.begin(), inventory_.hcas.end(),
          [&known](const fabric::Hca& other) { return PlaceOf(other) == PlaceOf(known); });
      if (!is_here) return absl::StrCat(known.name, " (", known.pci_address, ", in a pod)");
    }
    return "";
  }

  // HCAs in use by pods remain rails; and a port remains one rail while its NIC is absent.
  void ChooseAmongSharers() {
    const auto has_own = [](const std::vector<fabric::Hca>& hcas, const std::string& address) {
      return std::any_of(hcas.begin(), hcas.end(), [&address](const fabric::Hca& hca) {
        return hca.offered && hca.pci_address == address && fabric::OwnerOf(hca).empty();
      });
    };
    for (fabric::Hca& hca : inventory_.hcas) {
      const std::string owner = fabric::OwnerOf(hca);
      if (owner.empty() && hca.shares_with.empty()) hca.shares_with = ChosenInAPod(hca);
      if ((owner.empty() && hca.shares_with.empty()) || !fabric::CanBeRail(hca.role)) continue;
      if (!owner.empty() && !hca.chosen &&
          (has_own(inventory_.hcas, owner) || has_own(map_.hcas, owner))) {
        hca.shares_with = owner;
      }
      if (AnyMayBeHeldAt(PlaceOf(hca))) hca.shares_with.clear();
      hca.offered = hca.shares_with.empty();
      fabric::Judge(hca, fabric::PodNetwork::kUnknown);
    }
  }

  void Take(size_t seen, size_t known) {
    known_of_[seen] = known;
    found_[known] = true;
  }

  void MatchNames() {
    for (size_t i = 0; i < inventory_.hcas.size(); ++i) {
      const fabric::Hca& hca = inventory_.hcas[i];
      if (!hca.offered) continue;
      for (size_t k = 0; k < map_.hcas.size(); ++k) {
        if (!found_[k] && map_.hcas[k].name == hca.name &&
            map_.hcas[k].pci_address == hca.pci_address && map_.hcas[k].part == hca.part) {
          Take(i, k);
          break;
        }
      }
    }
  }

  // A missing HCA and a new one in its place are the same.
  void MatchPlaces() {
    std::map<std::string, std::pair<std::vector<size_t>, std::vector<size_t>>> places;
    for (size_t i = 0; i < inventory_.hcas.size(); ++i) {
      const fabric::Hca& hca = inventory_.hcas[i];
      if (hca.offered && !known_of_[i].has_value()) places[PlaceOf(hca)].first.push_back(i);
    }
    for (size_t k = 0; k < map_.hcas.size(); ++k) {
      if (!found_[k]) places[PlaceOf(map_.hcas[k])].second.push_back(k);
    }
    for (const auto& [place, both] : places) {
      const auto& [seen, known] = both;
      if (seen.size() == 1 && known.size() == 1 && !map_.several.contains(place)) {
        Take(seen[0], known[0]);
      }
    }
  }

  std::string NewId(const fabric::Hca& hca) const {
    const auto taken = [this](const std::string& id) {
      return WholeHca(id) != id || id == kAllHcas || Known(id) ||
             std::any_of(inventory_.hcas.begin(), inventory_.hcas.end(),
                         [&id](const fabric::Hca& other) { return other.id == id; });
    };
    std::string id = DeviceId(hca.name, hca.pci_address);
    if (held_.contains(id) && !taken(id)) return id;
    const auto same_function = [&hca](const fabric::Hca& other) {
      return other.offered && other.pci_address == hca.pci_address;
    };
    if (!hca.pci_address.empty() &&
        std::count_if(inventory_.hcas.begin(), inventory_.hcas.end(), same_function) == 1) {
      for (const std::string& held : held_) {
        const bool is_id = !fabric::ParsePciAddress(held).has_value();
        if (is_id && PciAddressIn(held) == hca.pci_address && !taken(held)) return held;
      }
    }
    // Another HCA may have had this name.
    for (int i = 2; taken(id); ++i) id = DeviceId(absl::StrCat(hca.name, ".", i), hca.pci_address);
    return id;
  }

  // Returns whether the device does not need a permanent place, as such devices come and go.
  bool IsPassing(const fabric::Hca& hca) const {
    return hca.pci_address.empty() || absl::StartsWith(hca.part, "sf") ||
           !hca.physical_function.empty() ||
           std::any_of(inventory_.hcas.begin(), inventory_.hcas.end(),
                       [&hca](const fabric::Hca& other) {
                         // Or it is present, but no longer a rail.
                         const bool counts = other.offered || !other.shares_with.empty() ||
                                             other.role == fabric::HcaRole::kSwitchdevFunction ||
                                             other.role == fabric::HcaRole::kSwitchManagement;
                         return other.present && counts && other.pci_address == hca.pci_address &&
                                other.part == hca.part;
                       });
  }

  void Settle() {
    for (size_t i = 0; i < inventory_.hcas.size(); ++i) {
      fabric::Hca& hca = inventory_.hcas[i];
      hca.rail = -1;
      if (!hca.offered) {
        hca.id = DeviceId(hca.name, hca.pci_address);
      } else if (known_of_[i].has_value()) {
        const fabric::Hca& known = map_.hcas[*known_of_[i]];
        hca.id = known.id;
        hca.rail = known.rail;
        if (hca.health.Has(fabric::Stage::kHang) && hca.ports.empty()) {
          hca.ports = known.ports;
          hca.role = known.role;
        }
        // While a pod has it, its interface may be in the pod, or come back under the pod's name.
        if (hca.netdev.empty() || (!known.netdev.empty() && Held(known))) {
          hca.netdev = known.netdev;
          if (hca.slaves.empty()) hca.slaves = known.slaves;
        }
      } else {
        hca.id = NewId(hca);
        // Only names distinguish devices of one place, and names change. The interface of a
        // software device may be in a pod, under another name or invisible.
        for (size_t k = 0; k < map_.hcas.size(); ++k) {
          const fabric::Hca& known = map_.hcas[k];
          const bool is_lost = !found_[k] && known.pci_address.empty() && hca.pci_address.empty();
          if (is_lost || PlaceOf(known) == PlaceOf(hca)) map_.may_be[hca.id].insert(known.id);
        }
      }
    }
    std::vector<fabric::Hca> missing;
    for (size_t k = 0; k < map_.hcas.size(); ++k) {
      if (found_[k]) continue;
      // An HCA in doubt has never been allocated.
      const bool given =
          map_.may_be.contains(map_.hcas[k].id) ? Held(map_.hcas[k]) : MayBeHeld(map_.hcas[k]);
      if (IsPassing(map_.hcas[k]) && !given) continue;
      missing.push_back(map_.hcas[k]);
      Forget(missing.back());
    }
    inventory_.hcas.insert(inventory_.hcas.end(), missing.begin(), missing.end());
  }

  // Returns a number between its neighbours if there is one, else the lowest free number.
  int RoomFor(size_t place) const {
    std::set<int> taken;
    int after = -1;
    for (size_t i = 0; i < inventory_.hcas.size(); ++i) {
      const int rail = inventory_.hcas[i].rail;
      if (rail < 0) continue;
      taken.insert(rail);
      if (i < place) after = std::max(after, rail);
    }
    int rail = after + 1;
    const auto next =
        std::find_if(inventory_.hcas.begin() + static_cast<std::ptrdiff_t>(place),
                     inventory_.hcas.end(), [](const fabric::Hca& hca) { return hca.rail >= 0; });
    if (!taken.contains(rail) && (next == inventory_.hcas.end() || rail < next->rail)) return rail;
    for (rail = 0; taken.contains(rail);) ++rail;
    return rail;
  }

  // Orders by PCI address, where new ones follow known ones, then by name.
  static bool PlaceLess(const fabric::Hca& a, const fabric::Hca& b) {
    if (a.offered != b.offered) return a.offered;
    const std::optional<fabric::PciAddress> x = fabric::ParsePciAddress(a.pci_address);
    const std::optional<fabric::PciAddress> y = fabric::ParsePciAddress(b.pci_address);
    if (x.has_value() != y.has_value()) return x.has_value();
    if (x != y) return *x < *y;
    if ((a.rail < 0) != (b.rail < 0)) return a.rail >= 0;
    if (a.rail != b.rail) return a.rail < b.rail;
    return fabric::NaturalLess(a.name, b.name);
  }

  void Number() {
    std::vector<fabric::Hca>& hcas = inventory_.hcas;
    std::sort(hcas.begin(), hcas.end(), PlaceLess);
    for (size_t i = 0; i < hcas.size(); ++i) {
      if (hcas[i].offered && hcas[i].rail < 0) hcas[i].rail = RoomFor(i);
    }
    const auto by_rail = [](const fabric::Hca& a, const fabric::Hca& b) {
      if (a.offered != b.offered) return a.offered;
      return a.rail < b.rail;
    };
    const bool idle = std::none_of(hcas.begin(), hcas.end(), [this](const fabric::Hca& hca) {
      return hca.offered && MayBeHeld(hca);
    });
    if (idle && !std::is_sorted(hcas.begin(), hcas.end(), by_rail)) {
      int next = 0;
      for (fabric::Hca& hca : hcas) hca.rail = hca.offered ? next++ : -1;
    }
    fabric::LimitRails(hcas);
    for (fabric::Hca& hca : hcas) {
      if (hca.beyond_limit) fabric::Judge(hca, fabric::PodNetwork::kUnknown);
    }
    std::stable_sort(hcas.begin(), hcas.end(), by_rail);
  }

  void NoteSeveral() {
    std::map<std::string, int> devices;
    for (const fabric::Hca& hca : inventory_.hcas) devices[PlaceOf(hca)] += hca.offered ? 1 : 0;
    std::set<std::string> several;
    for (const auto& [place, count] : devices) {
      if ((count > 1 || map_.several.contains(place)) && AnyMayBeHeldAt(place)) {
        several.insert(place);
      }
    }
    map_.several = std::move(several);
  }

  // Withholds HCAs that a pod may have under another name.
  void Doubt() {
    std::map<std::string, std::set<std::string>> may_be;
    for (fabric::Hca& hca : inventory_.hcas) {
      const auto others = map_.may_be.find(hca.id);
      if (others == map_.may_be.end() || !hca.offered) continue;
      for (const fabric::Hca& other : inventory_.hcas) {
        if (!others->second.contains(other.id) || !MayBeHeld(other)) continue;
        may_be[hca.id].insert(other.id);
        hca.health.Set(fabric::Stage::kIdentity,
                       absl::StrCat(hca.pci_address.empty() ? "the node" : hca.pci_address,
                                    " has several RDMA devices whose names have changed, and a pod "
                                    "may hold this one as ",
                                    other.id, "; it is offered after that pod has ended"));
      }
    }
    map_.may_be = std::move(may_be);
  }

  const bool complete_;
  const std::set<std::string> held_;
  RailMap& map_;
  fabric::NodeInventory& inventory_;
  std::vector<std::optional<size_t>> known_of_;  // by place in inventory_
  std::vector<bool> found_;                      // by place in map_
};

absl::Status BadMap(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("rail map: ", what));
}

std::string MapText(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::set<std::string> MapTexts(const Json& object, const char* field) {
  std::set<std::string> texts;
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.insert(text.get<std::string>());
  }
  return texts;
}

// Returns nullopt if the field is not a number or out of range.
std::optional<int> MapNumber(const Json& object, const char* field, int least, int most) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto number = found->get<int64_t>();
  if (number < least || number > most) return std::nullopt;
  return static_cast<int>(number);
}

std::optional<fabric::Hca> ReadMapHca(const Json& item) {
  if (!item.is_object()) return std::nullopt;
  fabric::Hca hca;
  hca.id = MapText(item, "id");
  hca.name = MapText(item, "device");
  hca.pci_address = MapText(item, "pciAddress");
  hca.part = MapText(item, "part");
  hca.physical_function = MapText(item, "physicalFunction");
  hca.netdev = MapText(item, "netdev");
  hca.vendor = MapText(item, "vendor");
  hca.device = MapText(item, "deviceId");
  hca.driver = MapText(item, "driver");
  hca.role =
      fabric::ParseHcaRole(MapText(item, "role")).value_or(fabric::HcaRole::kPhysicalFunction);
  const auto chosen = item.find("chosen");
  hca.chosen = chosen != item.end() && chosen->is_boolean() && chosen->get<bool>();
  hca.numa_node = MapNumber(item, "numaNode", 0, kMaxMapNumaNode).value_or(-1);
  const std::optional<int> rail = MapNumber(item, "rail", 0, fabric::kHighestRail);
  const bool has_place =
      hca.pci_address.empty() || fabric::ParsePciAddress(hca.pci_address).has_value();
  if (hca.id.empty() || WholeHca(hca.id) != hca.id || hca.name.empty() || !has_place ||
      !rail.has_value()) {
    return std::nullopt;
  }
  hca.rail = *rail;
  if (const std::optional<int> port = MapNumber(item, "port", 1, 255); port.has_value()) {
    hca.ports.push_back({*port, "UNKNOWN", MapText(item, "linkLayer"), 0, ""});
  }
  MarkMissing(hca);
  return hca;
}

}  // namespace

void Recognize(const Holdings& holdings, RailMap& map, fabric::NodeInventory& inventory) {
  Recognition(holdings, map, inventory).Run();
}

std::string ToJson(const RailMap& map, const Machine& machine) {
  Json hcas = Json::array();
  for (const fabric::Hca& hca : map.hcas) {
    Json item = {{"rail", hca.rail},          {"id", hca.id},
                 {"device", hca.name},        {"pciAddress", hca.pci_address},
                 {"part", hca.part},          {"physicalFunction", hca.physical_function},
                 {"netdev", hca.netdev},      {"vendor", hca.vendor},
                 {"deviceId", hca.device},    {"driver", hca.driver},
                 {"numaNode", hca.numa_node}, {"role", std::string(fabric::ToString(hca.role))}};
    if (const fabric::HcaPort* port = fabric::DataPort(hca); port != nullptr) {
      item["port"] = port->port;
      item["linkLayer"] = port->link_layer;
    }
    if (const auto others = map.may_be.find(hca.id); others != map.may_be.end()) {
      item["mayBe"] = others->second;
    }
    if (hca.chosen) item["chosen"] = true;
    hcas.push_back(std::move(item));
  }
  const Json document = {{"apiVersion", kMapApiVersion}, {"kind", kMapKind},
                         {"node", machine.node},         {"board", machine.board},
                         {"several", map.several},       {"hcas", hcas}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RailMap> ParseRailMap(absl::string_view json, const Machine& machine) {
  if (json.size() > kMaxMapText) return BadMap("the text is longer than 1 MiB");
  const Json document =
      Json::parse(json.data(), json.data() + json.size(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return BadMap("the text is not a JSON object");
  if (MapText(document, "apiVersion") != kMapApiVersion || MapText(document, "kind") != kMapKind) {
    return BadMap(absl::StrCat("it is not a ", kMapApiVersion, " ", kMapKind));
  }
  const Machine writer{MapText(document, "node"), MapText(document, "board")};
  const bool boards_differ =
      !writer.board.empty() && !machine.board.empty() && writer.board != machine.board;
  if (writer.node != machine.node || boards_differ) {
    return BadMap(absl::StrCat("it belongs to another machine: node ", writer.node, " (board ",
                               writer.board, "), but this is ", machine.node, " (board ",
                               machine.board, ")"));
  }
  const auto list = document.find("hcas");
  if (list == document.end() || !list->is_array() || list->size() > kMaxMapHcas) {
    return BadMap("hcas must be a list");
  }
  RailMap map;
  map.several = MapTexts(document, "several");
  std::set<std::string> ids;
  std::set<int> rails;
  for (const Json& item : *list) {
    std::optional<fabric::Hca> hca = ReadMapHca(item);
    if (!hca.has_value() || !ids.insert(hca->id).second || !rails.insert(hca->rail).second) {
      return BadMap(absl::StrCat(
          "hcas[", map.hcas.size(),
          "] must have a unique rail, a unique id, a device, and a valid PCI address or none"));
    }
    std::set<std::string> others = MapTexts(item, "mayBe");
    if (!others.empty()) map.may_be[hca->id] = std::move(others);
    map.hcas.push_back(*std::move(hca));
  }
  return map;
}

}  // namespace railhead::device_plugin
