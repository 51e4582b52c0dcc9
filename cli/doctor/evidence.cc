// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/evidence.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/output/command.h"
#include "jobs/job.h"
#include "kube/elements.h"
#include "operator/cluster/stored_pod.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::cli::doctor {
namespace {

using kube::FindPath;
using kube::Json;
using kube::StringAt;

// The operator writes at most this number into a list of its objects.
constexpr size_t kMostListed = 64;
constexpr int64_t kMostCounted = 1'000'000'000;
// Normal reasons of waiting, which are not reported.
constexpr absl::string_view kUsualWaits[] = {"ContainerCreating", "PodInitializing"};

// Returns a count: 0 if the field is not an integer; clamped to the valid range.
int64_t NumberAt(const Json& object, std::initializer_list<absl::string_view> path) {
  const Json* number = FindPath(object, path);
  if (number == nullptr || !number->is_number_integer()) return 0;
  return std::clamp<int64_t>(number->get<int64_t>(), 0, kMostCounted);
}

std::string Label(const Json& object, absl::string_view name) {
  return StringAt(object, {"metadata", "labels", name});
}

absl::Time TimeOf(const std::string& text) {
  absl::Time time = absl::InfinitePast();
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error) ? time : absl::InfinitePast();
}

bool IsTrue(const Json* condition) {
  return condition != nullptr && StringAt(*condition, {"status"}) == "True";
}

// Returns why the pod is not scheduled, or why its first waiting container waits.
std::string TroubleOf(const Json& pod) {
  const Json* scheduled = kube::FindCondition(pod, "PodScheduled");
  if (scheduled != nullptr && StringAt(*scheduled, {"status"}) == "False") {
    return absl::StrCat("not scheduled: ", StringAt(*scheduled, {"message"}));
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : kube::ElementsAt(pod, {"status", list})) {
      const std::string reason = StringAt(status, {"state", "waiting", "reason"});
      if (reason.empty() || std::find(std::begin(kUsualWaits), std::end(kUsualWaits), reason) !=
                                std::end(kUsualWaits)) {
        continue;
      }
      const std::string message = StringAt(status, {"state", "waiting", "message"});
      return message.empty() ? reason : absl::StrCat(reason, ": ", message);
    }
  }
  return "";
}

}  // namespace

std::optional<Workload> ReadWorkload(const Json& object, const std::string& kind) {
  if (Label(object, "app.kubernetes.io/part-of") != "railhead") return std::nullopt;
  Workload workload;
  workload.kind = kind;
  workload.space = StringAt(object, {"metadata", "namespace"});
  workload.name = StringAt(object, {"metadata", "name"});
  workload.component = Label(object, "app.kubernetes.io/component");
  workload.version = Label(object, "app.kubernetes.io/version");
  const bool everywhere = kind == "DaemonSet";
  workload.wanted = everywhere ? NumberAt(object, {"status", "desiredNumberScheduled"})
                               : NumberAt(object, {"spec", "replicas"});
  workload.made = NumberAt(object, {"status", everywhere ? "currentNumberScheduled" : "replicas"});
  workload.updated =
      NumberAt(object, {"status", everywhere ? "updatedNumberScheduled" : "updatedReplicas"});
  workload.ready = NumberAt(object, {"status", everywhere ? "numberReady" : "readyReplicas"});
  return workload;
}

std::optional<ComponentPod> ReadComponentPod(const Json& pod) {
  if (Label(pod, "app.kubernetes.io/name") != "railhead") return std::nullopt;
  // Pods that have ended, an evicted one too, have been replaced.
  const std::string phase = StringAt(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  ComponentPod component;
  component.component = Label(pod, "app.kubernetes.io/component");
  if (component.component != "operator" && component.component != "device-plugin" &&
      component.component != "memlock") {
    return std::nullopt;
  }
  component.space = StringAt(pod, {"metadata", "namespace"});
  component.name = StringAt(pod, {"metadata", "name"});
  component.node = StringAt(pod, {"spec", "nodeName"});
  component.ready = IsTrue(kube::FindCondition(pod, "Ready"));
  component.trouble = TroubleOf(pod);
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    if (component.image.empty()) component.image = StringAt(container, {"image"});
  }
  for (const Json& status : kube::ElementsAt(pod, {"status", "containerStatuses"})) {
    component.restarts += NumberAt(status, {"restartCount"});
  }
  return component;
}

std::optional<WebhookConfiguration> ReadWebhookConfiguration(const Json& object) {
  if (Label(object, "app.kubernetes.io/part-of") != "railhead") return std::nullopt;
  WebhookConfiguration configuration;
  configuration.name = StringAt(object, {"metadata", "name"});
  configuration.created = TimeOf(StringAt(object, {"metadata", "creationTimestamp"}));
  for (const Json& webhook : kube::ElementsAt(object, {"webhooks"})) {
    WebhookConfiguration::Webhook read;
    read.name = StringAt(webhook, {"name"});
    read.failure_policy = StringAt(webhook, {"failurePolicy"});
    if (!absl::Base64Unescape(StringAt(webhook, {"clientConfig", "caBundle"}), &read.bundle)) {
      read.bundle.clear();
    }
    configuration.webhooks.push_back(std::move(read));
  }
  return configuration;
}

Crd ReadCrd(const Json& object) {
  return {StringAt(object, {"metadata", "name"}), Label(object, "app.kubernetes.io/version"),
          IsTrue(kube::FindCondition(object, "Established"))};
}

std::optional<Leader> ReadLeader(const Json& lease) {
  if (Label(lease, "app.kubernetes.io/part-of") != "railhead") return std::nullopt;
  Leader leader;
  leader.space = StringAt(lease, {"metadata", "namespace"});
  leader.lease = StringAt(lease, {"metadata", "name"});
  leader.holder = StringAt(lease, {"spec", "holderIdentity"});
  leader.renewed = TimeOf(StringAt(lease, {"spec", "renewTime"}));
  leader.promised = absl::Seconds(NumberAt(lease, {"spec", "leaseDurationSeconds"}));
  return leader;
}

Node ReadNode(const Json& object, const op::RdmaResources& rdma) {
  Node node;
  node.facts =
      std::make_shared<const op::verdict::NodeFacts>(op::verdict::NodeFactsOf(object, rdma));
  node.ready = IsTrue(kube::FindCondition(object, "Ready"));
  if (const Json* rails = kube::FindCondition(object, "RailheadRailsReady")) {
    node.rails_ready = IsTrue(rails);
    node.rails_message = StringAt(*rails, {"message"});
  }
  int64_t gpus = 0;
  if (absl::SimpleAtoi(Label(object, "railhead.io/gpus"), &gpus)) node.gpus = gpus;
  return node;
}

std::optional<Told> ReadEvent(const Json& event) {
  Told told;
  told.kind = StringAt(event, {"involvedObject", "kind"});
  told.space = StringAt(event, {"involvedObject", "namespace"});
  told.name = StringAt(event, {"involvedObject", "name"});
  told.warning = StringAt(event, {"type"}) == "Warning";
  told.reason = StringAt(event, {"reason"});
  told.message = StringAt(event, {"message"});
  // By the reporter's clock, if it is set: the server's would put events that had to wait for the
  // server in another order.
  told.at = TimeOf(StringAt(event, {"lastTimestamp"}));
  if (told.at == absl::InfinitePast()) {
    told.at = TimeOf(StringAt(event, {"metadata", "creationTimestamp"}));
  }
  const std::string source = StringAt(event, {"source", "component"});
  if (told.name.empty() || !source.starts_with("railhead")) return std::nullopt;
  return told;
}

Report ReadReport(const Json& object) {
  Report report;
  report.space = StringAt(object, {"metadata", "namespace"});
  report.name = StringAt(object, {"metadata", "name"});
  for (const Json& owner : kube::ElementsAt(object, {"metadata", "ownerReferences"})) {
    if (report.owner.empty()) {
      report.owner = absl::StrCat(absl::AsciiStrToLower(StringAt(owner, {"kind"})), "/",
                                  StringAt(owner, {"name"}));
    }
    report.owner_uids.push_back(StringAt(owner, {"uid"}));
  }
  report.pods = NumberAt(object, {"status", "pods"});
  for (const Json& reason : kube::ElementsAt(object, {"status", "reasons"})) {
    if (report.reasons.size() == kMostListed) break;
    Report::Reason read = {StringAt(reason, {"reason"}),
                           StringAt(reason, {"severity"}) == "Warning",
                           NumberAt(reason, {"pods"}),
                           {},
                           StringAt(reason, {"fix"})};
    for (const Json& example : kube::ElementsAt(reason, {"examples"})) {
      if (example.is_string()) read.examples.push_back(example.get<std::string>());
    }
    report.reasons.push_back(std::move(read));
  }
  return report;
}

Topology ReadTopology(const Json& object) {
  Topology topology;
  for (const Json& condition : kube::ElementsAt(object, {"status", "conditions"})) {
    topology.conditions.push_back({StringAt(condition, {"type"}), IsTrue(&condition),
                                   StringAt(condition, {"reason"}),
                                   StringAt(condition, {"message"})});
  }
  for (const Json& conflict : kube::ElementsAt(object, {"status", "conflicts"})) {
    if (topology.conflicts.size() == kMostListed) break;
    topology.conflicts.push_back(StringAt(conflict, {"message"}));
  }
  topology.conflict_count = NumberAt(object, {"status", "conflictCount"});
  return topology;
}

void AddPod(const Json& pod, Evidence& evidence) {
  if (auto facts = op::verdict::PodFactsOf(pod, evidence.rdma); facts && !facts->finished) {
    RdmaPod rdma;
    const Json* scheduled = kube::FindCondition(pod, "PodScheduled");
    if (scheduled != nullptr && !IsTrue(scheduled)) {
      rdma.waits_since = TimeOf(StringAt(*scheduled, {"lastTransitionTime"}));
    }
    // The pods of a workload are found by its name, as those of a gang are.
    if (const auto job = jobs::JobOf(pod); job && facts->terms->gang.empty()) {
      op::verdict::PodTerms terms = *facts->terms;
      terms.gang = job->name;
      facts->terms = std::move(terms);
    }
    rdma.facts = std::make_shared<const op::verdict::PodFacts>(*std::move(facts));
    evidence.pods.push_back(std::move(rdma));
  }
  if (auto stored = op::gangs::ReadStoredPod(pod);
      stored && (stored->member || !stored->beside.empty())) {
    evidence.gang_pods.push_back(std::make_shared<const op::gangs::StoredPod>(*std::move(stored)));
  }
}

void DropEventsOfGone(Evidence& evidence) {
  std::set<std::string> pods;
  const auto path = [](const std::string& space, const std::string& name) {
    return absl::StrCat(space, "/", name);
  };
  for (const RdmaPod& pod : evidence.pods) pods.insert(path(pod.facts->space, pod.facts->name));
  for (const auto& pod : evidence.gang_pods) pods.insert(path(pod->space, pod->name));
  const bool nodes_known = IsRead("nodes", evidence);
  const bool pods_known = IsRead("pods", evidence);
  std::erase_if(evidence.events, [&](const Told& told) {
    return (told.kind == "Node" && nodes_known && !evidence.nodes.contains(told.name)) ||
           (told.kind == "Pod" && pods_known && !pods.contains(path(told.space, told.name)));
  });
}

bool IsRead(absl::string_view resource, const Evidence& evidence) {
  return std::none_of(evidence.unread.begin(), evidence.unread.end(),
                      [&](const Unread& unread) { return unread.resource == resource; });
}

namespace {

void KeepNodes(const std::set<std::string>& names, Evidence& evidence) {
  for (auto node = evidence.nodes.begin(); node != evidence.nodes.end();) {
    const auto next = std::next(node);
    if (!names.contains(node->first)) evidence.others.insert(evidence.nodes.extract(node));
    node = next;
  }
  std::erase_if(evidence.components, [&](const ComponentPod& pod) {
    return pod.component != "operator" && !names.contains(pod.node);
  });
  std::erase_if(evidence.events, [&](const Told& told) {
    return told.kind == "Node" && !names.contains(told.name);
  });
}

// Returns whether the pod, its gang, its owner or its workload has this name.
bool IsOf(const op::verdict::PodFacts& pod, const Scope& job) {
  return pod.space == job.space &&
         (pod.name == job.name || pod.terms->gang == job.name ||
          pod.terms->replicated_job == job.name ||
          (pod.terms->owner.has_value() && pod.terms->owner->name == job.name));
}

// `pod` is a member of a gang.
bool IsOf(const op::gangs::StoredPod& pod, const Scope& job) {
  return pod.space == job.space &&
         (pod.name == job.name || pod.member->terms->gang == job.name ||
          pod.member->terms->owner.name == job.name || pod.member->terms->group_name == job.name);
}

// Returns the group of a gang's member, or that of a pod beside a gang.
std::string GroupOf(const op::gangs::StoredPod& pod) {
  if (!pod.member) return absl::StrCat(pod.space, "/", pod.beside);
  return absl::StrCat(pod.space, "/", pod.member->terms->group, "@", pod.member->terms->attempt);
}

// Keeps whole gangs: a part would look incomplete, and the other pods explain what it waits for.
void KeepGangs(const Scope& job, Evidence& evidence) {
  std::set<std::string> uids;  // of pods found by other names, such as their workload
  for (const RdmaPod& pod : evidence.pods) {
    if (IsOf(*pod.facts, job)) uids.insert(pod.facts->uid);
  }
  std::set<std::string> keys;
  std::set<std::string> groups;
  for (const auto& pod : evidence.gang_pods) {
    if (!pod->member || (!IsOf(*pod, job) && !uids.contains(pod->uid))) continue;
    keys.insert(op::gangs::GangKeyOf(*pod));
    groups.insert(GroupOf(*pod));
  }
  std::erase_if(evidence.gang_pods, [&](const auto& pod) {
    return pod->member ? !keys.contains(op::gangs::GangKeyOf(*pod))
                       : !groups.contains(GroupOf(*pod));
  });
}

// Returns the uids of the pods and their owners, which own the reports about them.
std::set<std::string> OwnersOf(const std::vector<RdmaPod>& pods) {
  std::set<std::string> uids;
  for (const RdmaPod& pod : pods) {
    uids.insert(pod.facts->uid);
    if (pod.facts->terms->owner.has_value()) uids.insert(pod.facts->terms->owner->uid);
  }
  return uids;
}

bool IsOwnedByOneOf(const std::set<std::string>& uids, const Report& report) {
  return std::any_of(report.owner_uids.begin(), report.owner_uids.end(),
                     [&](const std::string& uid) { return uids.contains(uid); });
}

absl::Status NarrowToJob(const Scope& job, Evidence& evidence) {
  KeepGangs(job, evidence);
  std::set<std::string> members;  // uids
  for (const auto& pod : evidence.gang_pods) members.insert(pod->uid);
  std::erase_if(evidence.pods, [&](const RdmaPod& pod) {
    return !IsOf(*pod.facts, job) && !members.contains(pod.facts->uid);
  });
  const std::set<std::string> uids = OwnersOf(evidence.pods);
  std::erase_if(evidence.reports, [&](const Report& report) {
    const size_t slash = report.owner.find('/');
    const bool named = slash != std::string::npos && report.owner.substr(slash + 1) == job.name;
    return report.space != job.space ||
           (!named && report.name != job.name &&
            report.name != absl::StrCat("podgroup-", job.name) && !IsOwnedByOneOf(uids, report));
  });
  if (evidence.pods.empty() && evidence.gang_pods.empty() && evidence.reports.empty() &&
      IsRead("pods", evidence)) {
    return absl::NotFoundError(absl::StrCat("no pod that asks for rdma/* is called ", job.name,
                                            " in namespace ", job.space,
                                            ", or belongs to an owner or gang of that name; see: ",
                                            Command("kubectl get pods -n $0", {job.space})));
  }
  std::set<std::string> pods;
  std::set<std::string> owners = {job.name};
  std::set<std::string> nodes;
  for (const RdmaPod& pod : evidence.pods) {
    pods.insert(pod.facts->name);
    if (!pod.facts->node.empty()) nodes.insert(pod.facts->node);
  }
  for (const auto& pod : evidence.gang_pods) {
    pods.insert(pod->name);
    if (pod->member) owners.insert(pod->member->terms->owner.name);
  }
  KeepNodes(nodes, evidence);
  std::erase_if(evidence.events, [&](const Told& told) {
    return told.kind != "Node" &&
           (told.space != job.space || (!pods.contains(told.name) && !owners.contains(told.name)));
  });
  return absl::OkStatus();
}

absl::Status NarrowToNode(const std::string& name, Evidence& evidence) {
  if (!evidence.nodes.contains(name) && IsRead("nodes", evidence)) {
    return absl::NotFoundError(absl::StrCat("there is no node ", name, "; see: kubectl get nodes"));
  }
  KeepNodes({name}, evidence);
  std::set<std::string> pods;
  std::erase_if(evidence.pods, [&](const RdmaPod& pod) { return pod.facts->node != name; });
  for (const RdmaPod& pod : evidence.pods) {
    pods.insert(absl::StrCat(pod.facts->space, "/", pod.facts->name));
  }
  evidence.gang_pods.clear();
  const std::set<std::string> uids = OwnersOf(evidence.pods);
  std::erase_if(evidence.reports,
                [&](const Report& report) { return !IsOwnedByOneOf(uids, report); });
  std::erase_if(evidence.events, [&](const Told& told) {
    return told.kind != "Node" && !pods.contains(absl::StrCat(told.space, "/", told.name));
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Evidence> Narrow(Evidence evidence, const Scope& scope) {
  absl::Status status;
  if (scope.kind == Scope::Kind::kNode) status = NarrowToNode(scope.name, evidence);
  if (scope.kind == Scope::Kind::kJob) status = NarrowToJob(scope, evidence);
  if (!status.ok()) return status;
  return evidence;
}

}  // namespace railhead::cli::doctor
