// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "fabric/gid_table.h"
#include "fabric/hca_health.h"
#include "fabric/hca_netdev.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"

namespace railhead::fabric {
namespace {

bool IsUp(const Hca& hca) {
  return std::any_of(hca.ports.begin(), hca.ports.end(),
                     [](const HcaPort& port) { return port.state == "ACTIVE"; });
}

std::string Named(const Hca& hca) {
  return hca.pci_address.empty() ? hca.name : absl::StrCat(hca.name, " (", hca.pci_address, ")");
}

std::string RoleTrouble(const Hca& hca, PodNetwork /*network*/) {
  switch (hca.role) {
    case HcaRole::kManagementPlane:
      return "it is the management side of an adapter with several planes; its data side is "
             "another device";
    case HcaRole::kDataDirect:
      return absl::StrCat("it is the Data Direct side of ", absl::StripSuffix(hca.name, "_dma"),
                          "; use that device");
    case HcaRole::kSwitchManagement:
      return "it manages the NVLink switches of this machine (SMDL=SW_MNG in its vital product "
             "data) and is not an HCA for jobs";
    case HcaRole::kRepresentor:
      return "it is the representor of a virtual or scalable function; use that function";
    case HcaRole::kSwitchdevFunction:
      return "it is a physical function in switchdev mode, without a GID table; use RoCE on its "
             "virtual and scalable functions (devlink dev eswitch show)";
    default:
      return "";
  }
}

std::string ShareTrouble(const Hca& hca, PodNetwork /*network*/) {
  if (hca.shares_with.empty()) return "";
  return absl::StrCat("it shares the port of ", hca.shares_with, ", which is the rail");
}

std::string LimitTrouble(const Hca& hca, PodNetwork /*network*/) {
  if (!hca.beyond_limit) return "";
  return absl::StrCat("the node has more than ", kHighestRail + 1,
                      " rails; select fewer, with selectors and roles");
}

std::string NameTrouble(const Hca& hca, PodNetwork /*network*/) {
  if (IsSaneName(hca.name)) return "";
  return "its name contains characters other than letters, digits, '_', '-' and '.'";
}

std::string OrphanTrouble(const Hca& hca, PodNetwork /*network*/) {
  if (!hca.orphan) return "";
  return absl::StrCat(
      "it is a virtual function of ", hca.physical_function,
      ", which is not on the PCI bus; create the virtual functions again, or reboot the node");
}

// Returns the fix if no port is ACTIVE.
std::string PortAdvice(const Hca& hca) {
  const bool waits_for_manager =
      std::any_of(hca.ports.begin(), hca.ports.end(), [](const HcaPort& port) {
        return port.link_layer == "InfiniBand" && (port.state == "INIT" || port.state == "ARMED");
      });
  if (waits_for_manager) {
    return "its link is up, but no subnet manager has activated it; check that one runs (opensm, "
           "or a switch's) and that it reaches this port";
  }
  if (hca.ports.front().link_layer == "Ethernet" && hca.set_down) {
    return absl::StrCat("its interface ", hca.netdev, " is down; set it up: ip link set ",
                        hca.netdev, " up");
  }
  return "check the cable, the switch port and the interface's state";
}

std::string PortTrouble(const Hca& hca, PodNetwork network) {
  if (hca.ports.empty()) return "it has no port";
  // The component that moves the interface into a pod sets it up there.
  if (IsUp(hca) || (network == PodNetwork::kMoved && (hca.set_down || !hca.interface_here))) {
    return "";
  }
  std::vector<std::string> states;
  states.reserve(hca.ports.size());
  for (const HcaPort& port : hca.ports) {
    states.push_back(absl::StrCat("port ", port.port, " is ", port.state,
                                  port.phys_state.empty() ? "" : ", its link ", port.phys_state));
  }
  return absl::StrCat("no port is ACTIVE (", absl::StrJoin(states, ", "), "); ", PortAdvice(hca));
}

std::string DeviceTrouble(const Hca& hca, PodNetwork /*network*/) { return hca.device_trouble; }

std::string AddressTrouble(const Hca& hca, PodNetwork network) {
  const HcaPort* port = DataPort(hca);
  const bool wanted = network == PodNetwork::kHost || network == PodNetwork::kAttached;
  if (!wanted || port == nullptr || !IsUp(hca)) return "";
  const std::string interface =
      hca.netdev.empty() ? "its interface" : absl::StrCat("its interface ", hca.netdev);
  if (hca.address == AddressKind::kNone) {
    return absl::StrCat("port ", port->port, " has no RoCE v2 entry in its GID table; give ",
                        interface, " an IP address, and check that it is up");
  }
  if (network == PodNetwork::kAttached || hca.address != AddressKind::kLinkLocal) return "";
  return absl::StrCat("port ", port->port,
                      " has only a link-local address, which other subnets cannot reach; give ",
                      interface,
                      " an IP address, or set network: attached (or moved) for its resource if "
                      "pods have their own addresses or all nodes are in one segment");
}

using HcaRule = std::string (*)(const Hca& hca, PodNetwork network);

// First reasons that exclude a rail, then faults, then what its network lacks.
constexpr std::array<HcaRule, 8> kRules = {RoleTrouble,   ShareTrouble,  LimitTrouble,
                                           NameTrouble,   OrphanTrouble, PortTrouble,
                                           DeviceTrouble, AddressTrouble};

}  // namespace

std::string TroubleOf(const Hca& hca, PodNetwork network) {
  std::vector<std::string> troubles;
  for (const HcaRule rule : kRules) {
    std::string trouble = rule(hca, network);
    if (!trouble.empty()) troubles.push_back(std::move(trouble));
  }
  return absl::StrJoin(troubles, "; ");
}

void Judge(Hca& hca, PodNetwork network) {
  if (!hca.present || hca.health.Has(Stage::kHang)) return;
  hca.health.Set(Stage::kRules, TroubleOf(hca, network));
}

void JudgeTogether(std::vector<Hca>& hcas, const std::vector<PodNetwork>& networks) {
  const auto counts = [&](size_t i) {
    return hcas[i].present && hcas[i].offered && networks[i] == PodNetwork::kHost &&
           !hcas[i].host_gid.empty();
  };
  for (size_t i = 0; i < hcas.size(); ++i) {
    std::string trouble;
    for (size_t k = 0; k < hcas.size() && trouble.empty(); ++k) {
      if (k == i || !counts(i) || !counts(k) || hcas[k].host_gid != hcas[i].host_gid) continue;
      trouble =
          absl::StrCat("it has the same address as ", Named(hcas[k]), " (GID ", hcas[i].host_gid,
                       "), so either may receive the other's packets; give each a unique address");
    }
    hcas[i].health.Set(Stage::kSharedAddress, std::move(trouble));
  }
}

std::string OwnerOf(const Hca& hca) {
  if (!hca.part.empty()) return hca.pci_address;
  return hca.physical_function;
}

void ChooseRails(std::vector<Hca>& hcas, absl::FunctionRef<bool(const Hca&)> chosen) {
  for (Hca& hca : hcas) {
    hca.shares_with.clear();
    hca.chosen = false;
    hca.beyond_limit = false;
  }
  for (Hca& hca : hcas) {
    const std::string owner = OwnerOf(hca);
    if (owner.empty() || !CanBeRail(hca.role)) continue;
    const auto own = std::find_if(hcas.begin(), hcas.end(), [&owner](const Hca& other) {
      return other.pci_address == owner && other.part.empty() && CanBeRail(other.role);
    });
    hca.chosen = chosen(hca);
    if (own == hcas.end()) continue;
    if (!hca.chosen) {
      hca.shares_with = owner;
    } else if (own->shares_with.empty()) {
      own->shares_with = Named(hca);
    }
  }
  for (Hca& hca : hcas) {
    hca.offered = CanBeRail(hca.role) && hca.shares_with.empty();
    if (!hca.offered) hca.rail = -1;
  }
}

}  // namespace railhead::fabric
