// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/network.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/observations.h"
#include "fabric/natural_order.h"

namespace railhead::fabric {
namespace {

// Returns whether the name is an IP address, which has no short form: a DNS name neither ends in a
// number nor contains a colon.
bool IsAddress(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  return absl::StrContains(name, ':') ||
         (!last.empty() && std::all_of(last.begin(), last.end(), absl::ascii_isdigit));
}

std::string Short(const std::string& name) {
  return IsAddress(name) ? name : name.substr(0, name.find('.'));
}

// Host names are compared ignoring case, as in DNS.
std::string Lower(const std::string& name) { return absl::AsciiStrToLower(name); }

// Position of one NIC according to one source.
struct Claim {
  Evidence evidence = Evidence::kLldp;
  bool by_node = false;
  int at = -1;
  std::string port;
  double gbps = 0;
  std::string where;

  auto Rank() const { return std::tie(evidence, by_node, at, port); }
};

std::string Words(Evidence evidence, bool by_node) {
  if (evidence == Evidence::kInfiniBand) return "the subnet";
  return by_node ? "the node's LLDP" : "the switch's LLDP";
}

class Builder {
 public:
  Builder(const Observations& seen, std::vector<Finding>& findings)
      : seen_(seen), findings_(findings) {
    std::map<std::string, std::set<std::string>> with_short;
    for (const SeenNode& node : seen.nodes) with_short[Lower(Short(node.name))].insert(node.name);
    // A short name that several nodes share identifies none of them.
    for (const auto& [name, nodes] : with_short) {
      if (nodes.size() == 1) nodes_[name] = *nodes.begin();
    }
    for (const SeenNode& node : seen.nodes) nodes_[Lower(node.name)] = node.name;
  }

  Network Build() {
    Devices();
    for (const SeenLink& link : seen_.links) Link(link);
    Resolve();
    Strangers();
    return std::move(network_);
  }

 private:
  struct Known {
    std::string node;  // empty: not a node of the cluster
    int at = -1;       // its index among the switches
  };

  void Devices() {
    std::map<std::string, SeenDevice> devices;
    for (const SeenDevice& device : seen_.devices) {
      SeenDevice& known = devices.emplace(device.id, device).first->second;
      if (known.name.empty()) known.name = device.name;
      known.kind = std::max(known.kind, device.kind);  // the more specific kind takes precedence
    }
    if (seen_.nodes.empty()) {
      for (const auto& [id, device] : devices) {
        if (device.kind != DeviceKind::kHost || device.name.empty()) continue;
        std::string& name = nodes_.emplace(Lower(device.name), device.name).first->second;
        name = std::min(name, device.name);
      }
    }
    const std::set<std::string> firmware = Firmware(devices);
    std::map<std::string, std::vector<std::string>, NaturalOrder> switches;  // ids by name
    for (const auto& [id, device] : devices) {
      Known known;
      known.node = NodeOf(device);
      if (firmware.count(id) > 0) {
        firmware_.push_back(id);
      } else if (known.node.empty() && device.kind != DeviceKind::kHost) {
        switches[device.name.empty() ? id : device.name].push_back(id);
      } else if (known.node.empty()) {
        (device.name.empty() ? nameless_ : strangers_)
            .push_back(device.name.empty() ? id : device.name);
      }
      known_[id] = known;
    }
    for (const auto& [name, ids] : switches) {
      for (const std::string& id : ids) {
        known_[id].at = static_cast<int>(network_.switches.size());
        network_.switches.push_back(ids.size() == 1 ? name : absl::StrCat(name, " ", id));
      }
    }
  }

  // Returns the name of the node that the device is; empty: none.
  std::string NodeOf(const SeenDevice& device) const {
    if (device.kind == DeviceKind::kSwitch) return "";
    auto node = nodes_.find(Lower(device.name));
    if (node == nodes_.end()) node = nodes_.find(Lower(Short(device.name)));
    return node == nodes_.end() ? "" : node->second;
  }

  // Returns the ids of devices of unknown kind that are not switches.
  std::set<std::string> Firmware(const std::map<std::string, SeenDevice>& devices) const {
    std::set<std::string> found;
    for (const auto& [id, device] : devices) {
      if (device.kind == DeviceKind::kUnknown && device.name.empty()) found.insert(id);
    }
    for (const SeenLink& link : seen_.links) {
      if (found.empty()) break;
      found.erase(link.near.device);
      const auto near = devices.find(link.near.device);
      if (near == devices.end()) continue;
      if (near->second.kind == DeviceKind::kHost || !NodeOf(near->second).empty()) {
        found.erase(link.far.device);
      }
    }
    return found;
  }

  void Link(const SeenLink& link) {
    const Known& near = known_[link.near.device];
    const Known& far = known_[link.far.device];
    if (near.at >= 0 && far.at >= 0) {
      if (near.at != far.at) {
        network_.switch_links.insert(std::minmax(near.at, far.at));
      } else if (looped_.insert(near.at).second) {
        const std::string& name = network_.switches[static_cast<size_t>(near.at)];
        findings_.push_back(
            {Severity::kFail, kCycle, name,
             absl::StrCat("a cable leads from port ", link.near.port, " to its own port ",
                          link.far.port, " (", link.where, "); it is ignored"),
             "unplug the cable"});
      }
    } else if (far.at >= 0 && !near.node.empty()) {
      claims_[{near.node, link.near.port}].push_back(
          {link.evidence, true, far.at, link.far.port, link.gbps, link.where});
    } else if (near.at >= 0 && !far.node.empty()) {
      claims_[{far.node, link.far.port}].push_back(
          {link.evidence, false, near.at, link.near.port, link.gbps, link.where});
    }
  }

  void Resolve() {
    for (auto& [nic, claims] : claims_) {
      std::sort(claims.begin(), claims.end(),
                [](const Claim& a, const Claim& b) { return a.Rank() < b.Rank(); });
      const Claim& best = claims.front();
      double gbps = 0;
      for (const Claim& claim : claims) {
        if (claim.at == best.at) gbps = std::max(gbps, claim.gbps);
      }
      network_.nics[nic.first][nic.second] = {best.at, best.port, gbps, best.evidence};
      const auto other = std::find_if(claims.begin(), claims.end(),
                                      [&](const Claim& claim) { return claim.at != best.at; });
      if (other == claims.end()) continue;
      findings_.push_back(
          {Severity::kFail, kContradiction, nic.first,
           absl::StrCat(nic.second, " is at ", Name(best.at), " according to ",
                        Words(best.evidence, best.by_node), " (", best.where, "), and at ",
                        Name(other->at), " according to ", Words(other->evidence, other->by_node),
                        " (", other->where, "); the first takes precedence"),
           "one of them may be outdated: record both again"});
    }
  }

  void Strangers() {
    const auto tell = [this](std::vector<std::string>& names, const char* what, const char* fix) {
      if (names.empty()) return;
      std::sort(names.begin(), names.end(), NaturalLess);
      names.erase(std::unique(names.begin(), names.end()), names.end());
      findings_.push_back({Severity::kNote, kNoPlace, Listed(names), what, fix});
    };
    tell(strangers_, "not a node of the cluster, so ignored",
         "nothing to do for other hosts; a switch must not send a host's system description by "
         "LLDP (\"Debian GNU/Linux\")");
    tell(nameless_, "no host name in the node description, so ignored", "run rdma-ndd on it");
    tell(firmware_,
         "neither a name nor capabilities in LLDP, as the firmware of NICs sends it, so ignored",
         "nothing to do for NICs; if one is a switch, let it send its name");
  }

  std::string Name(int at) const { return network_.switches[static_cast<size_t>(at)]; }

  const Observations& seen_;
  std::vector<Finding>& findings_;
  std::map<std::string, std::string> nodes_;  // by full and by short name, in lower case
  std::map<std::string, Known> known_;        // by device id
  std::map<std::pair<std::string, std::string>, std::vector<Claim>> claims_;  // of node and NIC
  std::vector<std::string> strangers_;
  std::vector<std::string> nameless_;
  std::vector<std::string> firmware_;
  std::set<int> looped_;
  Network network_;
};

}  // namespace

bool NaturalOrder::operator()(const std::string& a, const std::string& b) const {
  return NaturalLess(a, b);
}

Network BuildNetwork(const Observations& seen, std::vector<Finding>& findings) {
  return Builder(seen, findings).Build();
}

std::vector<int> JoinedNetworks(const Network& network) {
  std::vector<int> of(network.switches.size());
  std::vector<std::vector<int>> neighbours(of.size());
  for (const auto& [a, b] : network.switch_links) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  std::fill(of.begin(), of.end(), -1);
  for (size_t i = 0; i < of.size(); ++i) {
    std::vector<int> next = {static_cast<int>(i)};
    while (!next.empty()) {
      const auto at = static_cast<size_t>(next.back());
      next.pop_back();
      if (of[at] >= 0) continue;
      of[at] = static_cast<int>(i);
      next.insert(next.end(), neighbours[at].begin(), neighbours[at].end());
    }
  }
  return of;
}

}  // namespace railhead::fabric
