// SPDX-License-Identifier: Apache-2.0
//
// Checks nodes, from data of agents and kubelets, and the fabric, from data of the operator.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/doctor/checks.h"
#include "cli/output/command.h"
#include "cli/output/words.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/reasons.h"

namespace railhead::cli::doctor {
namespace {

using fabric::SeenRail;
using op::verdict::Reason;
using op::verdict::RowOf;

constexpr size_t kMostNames = 3;

// An event of the agent, and the event that ends it.
struct Ending {
  absl::string_view reason;
  absl::string_view over;
  // The event that ends it may have the same time: times have a precision of a second.
  bool at_once;
};
constexpr Ending kOver[] = {
    {"ConfigurationRefused", "ConfigurationTaken", true},
    // The agent judges a configuration right after it has taken it.
    {"ResourceWithoutHcas", "ConfigurationTaken", false},
    {"DeviceScanHangs", "DeviceScanWorks", true},
    {"RailDown", "RailUp", true},
};
// Node events that other checks report in more detail.
constexpr absl::string_view kKnownBetter[] = {"RailDown", "RailUp"};

// "nodes n0, n1, n2 and 5 more"
std::string NodesOf(const std::vector<std::string>& names) {
  const size_t named = std::min(names.size(), kMostNames);
  const std::string list =
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(named), ", ");
  return absl::StrCat(
      names.size() == 1 ? "node " : "nodes ", list,
      names.size() > named ? absl::StrCat(" and ", names.size() - named, " more") : "");
}

std::string AgentLogs(const Evidence& evidence, const std::string& node) {
  for (const ComponentPod& pod : evidence.components) {
    if (pod.component == "device-plugin" && pod.node == node) {
      return Command("kubectl -n $0 logs $1 --tail=50", {pod.space, pod.name});
    }
  }
  return Command("kubectl -n $0 get pods -l app.kubernetes.io/component=device-plugin -o wide",
                 {InstallationOf(evidence).space});
}

int64_t UsableRails(const Node& node) {
  return std::count_if(node.facts->rails.begin(), node.facts->rails.end(),
                       [](const SeenRail& rail) { return rail.usable; });
}

bool HasDevices(const Node& node) {
  return std::any_of(node.facts->capacity.begin(), node.facts->capacity.end(),
                     [](const auto& resource) { return resource.second > 0; });
}

bool IsOver(const Told& told, const std::vector<Told>& events) {
  for (const Ending& ending : kOver) {
    if (told.reason != ending.reason) continue;
    for (const Told& other : events) {
      if (other.reason == ending.over && other.kind == told.kind && other.name == told.name &&
          (other.at > told.at || (ending.at_once && other.at == told.at))) {
        return true;
      }
    }
  }
  return false;
}

// Returns the latest warning of each node and reason that has not ended.
std::map<std::pair<std::string, std::string>, const Told*> AgentWarnings(
    const std::vector<Told>& events) {
  std::map<std::pair<std::string, std::string>, const Told*> latest;
  for (const Told& told : events) {
    if (told.kind != "Node" || !told.warning ||
        std::find(std::begin(kKnownBetter), std::end(kKnownBetter), told.reason) !=
            std::end(kKnownBetter) ||
        IsOver(told, events)) {
      continue;
    }
    const Told*& last = latest[{told.name, told.reason}];
    if (last == nullptr || last->at < told.at) last = &told;
  }
  return latest;
}

}  // namespace

void CheckNodes(const Evidence& evidence, Notes& notes) {
  if (!IsRead("nodes", evidence)) return;
  if (evidence.nodes.empty() && !evidence.others.empty()) {
    notes.Conclude("none of its pods is on a node");
    return;
  }
  int64_t rails = 0;
  int64_t with_rails = 0;
  std::vector<std::string> silent;
  for (const auto& [name, node] : evidence.nodes) {
    const std::string object = absl::StrCat("node ", name);
    if (node.rails_ready == false) {
      notes.Fail(object, node.rails_message, std::string(RowOf(Reason::kRailDown).fix));
    }
    if (!node.facts->announced && HasDevices(node)) silent.push_back(name);
    if (node.facts->announced && !node.ready) {
      notes.Warn(object, "its kubelet does not report: the state of its rails may be outdated",
                 Command("kubectl describe node $0", {name}));
    }
    rails += static_cast<int64_t>(node.facts->rails.size());
    with_rails += node.facts->rails.empty() && !HasDevices(node) ? 0 : 1;
  }
  for (const auto& [key, told] : AgentWarnings(evidence.events)) {
    notes.Warn(absl::StrCat("node ", told->name), absl::StrCat(told->reason, ": ", told->message),
               Command("see also: kubectl describe node $0", {told->name}));
  }
  if (!silent.empty()) {
    notes.Warn(NodesOf(silent), "offer rdma/*, but have no readable node facts",
               "set devicePlugin.nodeFacts in the chart's values, or check the agent's log for a "
               "missing permission");
  }
  if (with_rails == 0) {
    const Release at = InstallationOf(evidence);
    notes.Fail(
        evidence.nodes.size() == 1 ? absl::StrCat("node ", evidence.nodes.begin()->first) : "",
        "no RDMA device was detected: jobs use TCP",
        Command("list the devices of an agent, and why any is unusable: kubectl -n $0 exec "
                "daemonset/$1-device-plugin -- railhead-device-plugin discover --root /host; on a "
                "node, run ibstat and load the NIC's RDMA driver",
                {at.space, at.name}));
  }
  notes.Conclude(
      absl::StrCat(Counted(rails, "rail"), " on ", Counted(with_rails, "node"), " carry data"));
}

void CheckDevices(const Evidence& evidence, Notes& notes) {
  if (!IsRead("nodes", evidence)) return;
  std::map<std::string, int64_t> offered;
  for (const auto& [name, node] : evidence.nodes) {
    const std::string object = absl::StrCat("node ", name);
    const int64_t usable = UsableRails(node);
    if (usable > 0 && !HasDevices(node)) {
      notes.Fail(object,
                 absl::StrCat("has ", Counted(usable, "usable rail"), " and offers no rdma/*"),
                 absl::StrCat("see whether its agent is registered with the kubelet: ",
                              AgentLogs(evidence, name)));
    }
    for (const auto& [resource, capacity] : node.facts->capacity) {
      const auto found = node.facts->allocatable.find(resource);
      const int64_t healthy = found == node.facts->allocatable.end() ? 0 : found->second;
      offered[resource] += healthy;
      // If a rail is down, the agent has already reported which one.
      if (healthy >= capacity || node.rails_ready == false) continue;
      // The kubelet keeps a resource for five minutes after its agent has stopped offering it.
      const bool may_be_old = healthy == 0 && node.rails_ready == true;
      notes.Warn(
          object, absl::StrCat(healthy, " of ", capacity, " ", resource, " healthy"),
          absl::StrCat(may_be_old ? "if the agents' configuration no longer has this resource, "
                                    "the kubelet removes it within 5 minutes; otherwise "
                                  : "",
                       "see its agent's log: ", AgentLogs(evidence, name)));
    }
  }
  for (const Told& told : evidence.events) {
    if (told.kind != "Pod" ||
        (told.reason != "HcasNotNearest" && told.reason != "SeveralResources")) {
      continue;
    }
    const bool near = told.reason == "HcasNotNearest";
    notes.Warn(
        absl::StrCat("pod ", told.space, "/", told.name), told.message,
        near ? "set the kubelet's topologyManagerPolicy to best-effort or stricter on the node"
             : "request only one rdma/* resource per container");
  }
  if (offered.empty()) return;  // no device was detected; CheckNodes reports it
  notes.Conclude(absl::StrJoin(offered, ", ", [](std::string* out, const auto& resource) {
    absl::StrAppend(out, resource.second, " ", resource.first);
  }));
}

void CheckGpuDirect(const Evidence& evidence, Notes& notes) {
  if (!IsRead("nodes", evidence) || evidence.nodes.empty()) return;
  std::map<std::string, std::vector<std::string>> without;  // nodes by problem
  int64_t with_gpus = 0;
  for (const auto& [name, node] : evidence.nodes) {
    if (node.gpus == 0) continue;
    ++with_gpus;
    // The agent's message; without one, its label.
    if (!node.facts->gpu_direct_trouble.empty()) {
      without[node.facts->gpu_direct_trouble].push_back(name);
    } else if (node.facts->gpu_direct == "none") {
      without["HCAs cannot access the memory of its GPUs: data is copied through host memory"]
          .push_back(name);
    }
  }
  for (const auto& [trouble, names] : without) {
    notes.Warn(NodesOf(names), trouble, std::string(RowOf(Reason::kGpuDirectMissing).fix));
  }
  notes.Conclude(with_gpus == 0 ? std::string("no node with rails has GPUs")
                                : absl::StrCat(Counted(with_gpus, "node"),
                                               " with GPUs: HCAs can access their memory"));
}

void CheckMemlock(const Evidence& evidence, Notes& notes) {
  if (!IsRead("nodes", evidence) || evidence.nodes.empty()) return;
  std::map<double, std::vector<std::string>> low;  // nodes by limit
  int64_t known = 0;
  for (const auto& [name, node] : evidence.nodes) {
    if (!node.facts->memlock.has_value()) continue;
    ++known;
    if (node.gpus > 0 && *node.facts->memlock < op::verdict::kLeastMemlockForGpus) {
      low[*node.facts->memlock].push_back(name);
    }
  }
  for (const auto& [bytes, names] : low) {
    notes.Warn(NodesOf(names),
               absl::StrCat("containers can pin only ", static_cast<int64_t>(bytes / 1024),
                            " KiB unless they have IPC_LOCK and run as root: NCCL then uses TCP"),
               "set devicePlugin.memlock in the chart's values, or LimitMEMLOCK=infinity of the "
               "container runtime's service on these nodes");
  }
  notes.Conclude(known == 0 ? std::string("not known for any node")
                            : absl::StrCat("enough on ", Counted(known, "node")));
}

void CheckTopology(const Evidence& evidence, Notes& notes) {
  if (!IsRead("fabrictopologies.railhead.io", evidence)) return;
  if (!evidence.topology.has_value()) {
    notes.Conclude("not enabled (operator.topology.enabled)");
    return;
  }
  const Topology& topology = *evidence.topology;
  for (const Condition& condition : topology.conditions) {
    if (condition.is_true) continue;
    if (condition.type == "Discovered") {
      notes.Warn("fabrictopology cluster", condition.message,
                 "label nodes with topology.railhead.io/LEVEL, or write spec.model");
    } else if (condition.type == "Consistent" && topology.conflicts.empty()) {
      notes.Fail("fabrictopology cluster", condition.message, "railhead topology");
    } else if (condition.type == "Published") {
      notes.Fail("fabrictopology cluster", condition.message,
                 "see the operator's log; another field manager may write the node labels");
    }
  }
  for (const std::string& conflict : topology.conflicts) {
    notes.Fail("fabrictopology cluster", conflict, "see it in the tree: railhead topology");
  }
  const int64_t more = topology.conflict_count - static_cast<int64_t>(topology.conflicts.size());
  if (more > 0) {
    notes.Fail("fabrictopology cluster", absl::StrCat(more, " more conflicts"),
               "railhead topology");
  }
  notes.Conclude(topology.conditions.empty() ? "not checked by the operator yet"
                                             : "all sources agree");
}

}  // namespace railhead::cli::doctor
