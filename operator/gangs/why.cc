// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/why.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "jobs/job.h"
#include "kube/elements.h"
#include "operator/cluster/stored_pod.h"
#include "operator/config/config.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/stored_node.h"
#include "placement/topology/stored_topology.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using kube::StringAt;

constexpr size_t kMostTold = 5;
// The operator starts a gang that fits within seconds.
constexpr absl::Duration kUntilStarted = absl::Minutes(1);

// The pods that one answer is about.
struct Subject {
  std::string space;
  std::string name;
  std::string kind;
  std::string key;               // of its gang
  std::string pod;               // name of one of its pods
  std::set<std::string> uids;    // of its pods
  std::set<std::string> owners;  // uids of them
};

// Returns the scheduler's message about a pod without a node; "" if there is none.
std::string SchedulersWord(const Json& pod) {
  const Json* scheduled = kube::FindCondition(pod, "PodScheduled");
  if (scheduled == nullptr || StringAt(*scheduled, {"status"}) != "False") return "";
  std::string message = StringAt(*scheduled, {"message"});
  return message.empty() ? StringAt(*scheduled, {"reason"}) : message;
}

std::string StateOf(Decision::State state) {
  switch (state) {
    case Decision::State::kRunning:
      return "running";
    case Decision::State::kIncomplete:
      return "incomplete";
    case Decision::State::kWaiting:
      return "waiting";
    case Decision::State::kPlaced:
      return "placed";
    case Decision::State::kTimedOut:
      return "timed-out";
  }
  return "";
}

// Returns whether pods of the gang wait or run, or may.
bool IsAlive(const Gang& gang) { return !gang.gated.empty() || !gang.released.empty(); }

// Drops gangs of the name of another one of the namespace if that one has pods and they have none:
// the earlier attempts of a job that was restarted, whose pods terminate.
void DropFormer(const std::map<std::string, const Gang*>& gangs,
                std::map<std::string, Subject>& by_key) {
  std::set<std::pair<std::string, std::string>> alive;
  for (const auto& [key, gang] : gangs) {
    if (IsAlive(*gang)) alive.emplace(gang->space, gang->name);
  }
  for (const auto& [key, gang] : gangs) {
    if (!IsAlive(*gang) && alive.contains({gang->space, gang->name})) by_key.erase(key);
  }
}

// Returns all jobs of this name.
std::vector<Subject> SubjectsOf(const ClusterObjects& objects, const std::vector<Gang>& gangs,
                                const std::string& space, const std::string& job) {
  std::map<std::string, Subject> by_key;
  std::map<std::string, const Gang*> named_gangs;
  for (const Gang& gang : gangs) {
    if (!space.empty() && gang.space != space) continue;
    Subject subject = {gang.space, gang.name, "Gang", gang.key, {}, gang.ended, {gang.owner.uid}};
    bool named = gang.name == job;
    const auto add = [&](const PodValue& pod) {
      named = named || pod->member->terms->gang == job || pod->member->terms->owner.name == job ||
              pod->name == job;
      if (subject.pod.empty()) subject.pod = pod->name;
      subject.uids.insert(pod->uid);
      subject.owners.insert(pod->member->terms->owner.uid);
    };
    for (const PodValue& pod : gang.gated) add(pod);
    for (const Released& released : gang.released) add(released.pod);
    if (!named) continue;
    by_key[gang.key] = std::move(subject);
    named_gangs[gang.key] = &gang;
  }
  DropFormer(named_gangs, by_key);
  if (by_key.empty()) {
    for (const Json& pod : objects.pods) {
      const std::string here = StringAt(pod, {"metadata", "namespace"});
      const jobs::Owner owner = jobs::ControllerOf(pod).value_or(jobs::Owner());
      const std::string name = StringAt(pod, {"metadata", "name"});
      // A JobSet's pods are controlled by its Jobs.
      const std::optional<jobs::Job> workload = jobs::JobOf(pod);
      const bool of_workload = workload.has_value() && workload->name == job;
      if ((!space.empty() && here != space) || (owner.name != job && name != job && !of_workload)) {
        continue;
      }
      Subject& subject = by_key[absl::StrCat(here, "/",
                                             owner.name == job ? owner.uid
                                             : of_workload     ? workload->whole
                                                               : name)];
      subject.space = here;
      subject.name = job;
      subject.kind = owner.name == job ? owner.kind
                     : of_workload     ? std::string(workload->kind->name)
                                       : "Pod";
      subject.pod = name;
      subject.uids.insert(StringAt(pod, {"metadata", "uid"}));
      if (owner.name == job) subject.owners.insert(owner.uid);
    }
  }
  std::vector<Subject> subjects;
  subjects.reserve(by_key.size());
  for (auto& [key, subject] : by_key) subjects.push_back(std::move(subject));
  return subjects;
}

struct PodStates {
  size_t waiting = 0;  // without a node
  size_t ended = 0;    // whether they had one or not
};

PodStates Tell(const ClusterObjects& objects, const Subject& subject, WhyAnswer& answer) {
  PodStates states;
  std::map<std::string, size_t> words;
  for (const Json& pod : objects.pods) {
    if (!subject.uids.contains(StringAt(pod, {"metadata", "uid"}))) continue;
    ++answer.pods;
    const bool bound = !StringAt(pod, {"spec", "nodeName"}).empty();
    if (bound) ++answer.bound;
    if (const std::string phase = StringAt(pod, {"status", "phase"});
        phase == "Succeeded" || phase == "Failed") {
      ++states.ended;
      continue;
    }
    if (bound) continue;
    ++states.waiting;
    if (std::string word = SchedulersWord(pod); !word.empty()) {
      ++words[word];
    }
  }
  answer.scheduler.assign(words.begin(), words.end());
  std::stable_sort(answer.scheduler.begin(), answer.scheduler.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::pair<std::string, const Json*>> events;  // by time
  for (const Json& event : objects.events) {
    const std::string about = StringAt(event, {"involvedObject", "uid"});
    const bool ours = subject.uids.contains(about) || subject.owners.contains(about);
    if (about.empty() || !ours || !StringAt(event, {"reason"}).starts_with("Gang")) continue;
    events.emplace_back(StringAt(event, {"lastTimestamp"}), &event);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t skipped = events.size() - std::min(events.size(), kMostTold);
  for (size_t i = skipped; i < events.size(); ++i) {
    answer.told.emplace_back(StringAt(*events[i].second, {"reason"}),
                             StringAt(*events[i].second, {"message"}));
  }
  return states;
}

// Returns why a gang that fits has not been started; "" if it is about to.
std::string WhyNotStarted(const Gang& gang, const WhyAnswer& answer, absl::Time now) {
  if (gang.gated.empty()) return "";
  if (!answer.told.empty() && answer.told.back().first == "GangBlocked") {
    return absl::StrCat("fits, but the operator could not start it: ", answer.told.back().second);
  }
  const absl::Duration waited = now - gang.waits_since;
  if (waited <= kUntilStarted) return "";
  return absl::StrCat("fits, but the operator has not started it for ",
                      absl::FormatDuration(absl::Trunc(waited, absl::Minutes(1))),
                      "; see its events and railhead doctor");
}

}  // namespace

void Collect(Json document, ClusterObjects& objects) {
  if (Json* items =
          document.is_object() && document.contains("items") ? &document["items"] : nullptr;
      items != nullptr && items->is_array()) {
    for (Json& item : *items) Collect(std::move(item), objects);
    return;
  }
  const std::string kind = StringAt(document, {"kind"});
  if (kind == "Node") {
    objects.nodes.push_back(std::move(document));
  } else if (kind == "Pod") {
    objects.pods.push_back(std::move(document));
  } else if (kind == "Event") {
    objects.events.push_back(std::move(document));
  } else if (kind == topology::kTopologyKind) {
    objects.topologies.push_back(std::move(document));
  } else if (auto rdma = ReadRdmaResources(document)) {
    objects.rdma = *std::move(rdma);
  }
}

absl::StatusOr<WhyAnswer> Why(const ClusterObjects& objects, const std::string& space,
                              const std::string& job, absl::Time now) {
  std::vector<NodeValue> nodes;
  for (const Json& object : objects.nodes) {
    std::optional<StoredNode> node = ReadStoredNode(object, objects.rdma);
    if (node) nodes.push_back(std::make_shared<const StoredNode>(*std::move(node)));
  }
  std::vector<PodValue> pods;
  for (const Json& object : objects.pods) {
    std::optional<StoredPod> pod = ReadStoredPod(object, objects.rdma);
    if (pod) pods.push_back(std::make_shared<const StoredPod>(*std::move(pod)));
  }
  std::vector<topology::ModelPart> parts;
  for (const Json& object : objects.topologies) {
    if (auto part = topology::ReadModelPart(object)) parts.push_back(*std::move(part));
  }
  // Ignores an unreadable topology, as the operator does.
  const NodeTree tree =
      BuildTree(nodes, topology::JoinModel(std::move(parts)).value_or(std::nullopt));
  ClusterRoom room(&tree, pods, {}, objects.rdma);
  std::vector<Gang> gangs = GangsOf(pods, {}, room.node_of_hostname());
  const std::vector<Subject> subjects = SubjectsOf(objects, gangs, space, job);
  if (subjects.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no gang, owner of pods or pod has the name ", job,
                     space.empty() ? "" : absl::StrCat(" in namespace ", space),
                     "; a job that is suspended or new may have no pods yet"));
  }
  if (subjects.size() > 1) {
    std::vector<std::string> names;
    names.reserve(subjects.size());
    for (const Subject& subject : subjects) {
      names.push_back(absl::StrCat(subject.space, "/", subject.name,
                                   subject.pod.empty() ? "" : " with pod " + subject.pod));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(job, " is ambiguous: ", absl::StrJoin(names, ", "),
                     "; choose one with --namespace, or name one of its pods"));
  }
  const Subject& subject = subjects.front();
  WhyAnswer answer;
  answer.space = subject.space;
  answer.name = subject.name;
  answer.kind = subject.kind;
  const PodStates states = Tell(objects, subject, answer);
  const auto finish = [&answer] {
    answer.state = "finished";
    answer.message = "all its pods have ended";
    return answer;
  };
  if (subject.kind != "Gang") {
    if (states.ended == answer.pods) return finish();
    answer.state = states.waiting == 0 ? "running" : "pending";
    if (answer.pending()) {
      answer.message = "its pods are not a gang: the scheduler places each alone";
    }
    return answer;
  }
  const auto is_it = [&](const Gang& gang) { return gang.key == subject.key; };
  const auto its_gang = std::find_if(gangs.begin(), gangs.end(), is_it);
  if (!IsAlive(*its_gang)) return finish();
  DecideOptions options;
  options.now = now;
  options.explain = is_it;
  for (Decision& decision : Decide(std::move(gangs), {}, room, options)) {
    if (!is_it(decision.gang)) continue;
    answer.state = StateOf(decision.state);
    answer.gated = decision.gang.gated.size();
    answer.message = std::move(decision.message);
    answer.reasons = std::move(decision.reasons);
    answer.notes = std::move(decision.notes);
    if (decision.state == Decision::State::kPlaced) {
      if (std::string why = WhyNotStarted(decision.gang, answer, now); !why.empty()) {
        answer.state = "pending";
        answer.message = absl::StrCat(why, answer.message.empty() ? "" : "; ", answer.message);
        answer.notes.insert(answer.notes.begin(), std::move(why));
      }
    }
    // Released, and the scheduler still finds no place for it.
    if (decision.state == Decision::State::kRunning && states.waiting > 0) {
      answer.state = "pending";
      answer.message =
          WaitsInScheduler(decision.gang)
              ? "kube-scheduler places its pods (spec.schedulingGroup)"
              : "its pods are released, and the scheduler has not bound all of them yet";
    }
  }
  return answer;
}

}  // namespace railhead::op::gangs
