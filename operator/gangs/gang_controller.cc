// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "operator/gangs/count_gangs.h"
#include "operator/gangs/names.h"
#include "operator/gangs/release_patch.h"
#include "operator/topology/stored_topology.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;

constexpr size_t kAtOnce = 8;  // calls of the API
// Changes that come together are looked at together: the pods of a gang come one by one.
constexpr absl::Duration kSettle = absl::Milliseconds(200);
constexpr absl::Duration kUntilSynced = absl::Seconds(1);
// What depends on the time alone is looked at so often while there are gangs that do not run.
constexpr absl::Duration kLookAgain = absl::Seconds(10);
// A gang that is just being made is no news.
constexpr absl::Duration kUntilMade = absl::Seconds(10);
constexpr kube::BackoffOptions kBackoff = {absl::Milliseconds(500), absl::Seconds(30)};

kube::ReflectorOptions Watching(const char* resource) {
  kube::ReflectorOptions options;
  options.collection = {"v1", resource, "", ""};
  return options;
}

// The server has refused for good: the pod is another one by now, or not as it was.
bool IsRefusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsInvalidArgument(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
}

}  // namespace

GangController::GangController(GangControllerOptions options, kube::Api* api,
                               std::function<bool()> leads)
    : options_(std::move(options)),
      api_(api),
      leads_(std::move(leads)),
      rounds_("gangs", kBackoff),
      events_(api, options_.host, options_.now),
      pods_(Watching("pods"), api, ReadStoredPod, rounds_.Watching<StoredPod>("pods", kSettle)),
      nodes_(Watching("nodes"), api, ReadStoredNode,
             rounds_.Watching<StoredNode>("nodes", kSettle)) {
  if (!options_.topology) return;
  kube::ReflectorOptions watched;
  watched.collection = {topology::kTopologyVersion, topology::kTopologyResource, "", ""};
  watched.may_be_unknown = true;
  models_ = std::make_unique<kube::Informer<fabric::FabricModel>>(
      watched, api, topology::ReadGivenModel,
      rounds_.Watching<fabric::FabricModel>(topology::kTopologyResource, kSettle));
}

void GangController::Start() {
  pods_.Start();
  nodes_.Start();
  if (models_ != nullptr) models_->Start();
}

void GangController::RequestStop() {
  pods_.RequestStop();
  nodes_.RequestStop();
  if (models_ != nullptr) models_->RequestStop();
}

void GangController::OnLead() { rounds_.Ask(); }

void GangController::Run(const std::stop_token& stop) {
  rounds_.Run(stop, [this] { return Round(); });
}

Promises GangController::PromisesMade() const {
  Promises promises;
  for (const auto& [uid, sent] : sent_) {
    promises[uid] = {sent.assignment.node, sent.assignment.hostname, sent.assignment.rank,
                     sent.placement};
  }
  return promises;
}

// Promises that the pods show by now, or that no pod is there for, are none any more.
void GangController::TakeSnapshot() {
  pods_now_.clear();
  std::map<std::string, PodValue> gated;
  pods_.cache().ForEach([&](const std::string&, const PodValue& pod) {
    pods_now_.push_back(pod);
    if (pod->member && pod->member->gate) gated[pod->uid] = pod;
  });
  std::erase_if(sent_, [&](const auto& entry) { return !gated.contains(entry.first); });
  std::erase_if(given_up_, [&](const std::string& uid) { return !gated.contains(uid); });
  for (auto& [uid, sent] : sent_) sent.assignment.pod = gated.at(uid);
  const uint64_t model = models_ == nullptr ? 0 : models_->cache().generation();
  if (room_ != nullptr && nodes_.cache().generation() == tree_generation_ &&
      model == model_generation_) {
    return;
  }
  std::vector<NodeValue> nodes;
  tree_generation_ = nodes_.cache().ForEach(
      [&](const std::string&, const NodeValue& node) { nodes.push_back(node); });
  std::optional<fabric::FabricModel> given;
  if (models_ != nullptr) {
    model_generation_ =
        models_->cache().ForEach([&](const std::string&, const auto& value) { given = *value; });
  }
  tree_ = BuildTree(nodes, given);
  room_ = std::make_unique<ClusterRoom>(&tree_);
}

absl::Status GangController::Round() {
  if (!leads_()) {
    // Another one goes on from what the pods show.
    sent_.clear();
    given_up_.clear();
    first_seen_.clear();
    refusals_ = Refusals();
    Count({}, options_.now());
    return absl::OkStatus();
  }
  // What is half known would be half wrong.
  if (!pods_.Synced() || !nodes_.Synced() || (models_ != nullptr && !models_->Synced())) {
    rounds_.AskAfter(kUntilSynced);
    return absl::OkStatus();
  }
  TakeSnapshot();
  const absl::Time now = options_.now();
  const Promises promises = PromisesMade();
  room_->Update(pods_now_, promises);
  absl::Status trouble = DeleteRefused();
  const std::vector<Decision> decisions = Decide(
      GangsOf(pods_now_, promises, room_->node_of_hostname()), refusals_.Nodes(now), *room_,
      {.now = now, .reserve_after = options_.reserve_after, .explain = [this](const Gang& gang) {
         return events_.WouldTell(gang);
       }});
  for (const Decision& decision : decisions) {
    for (const Assignment& assignment : decision.assignments) {
      sent_[assignment.pod->uid] = {assignment, decision.placement};
    }
  }
  trouble.Update(SendAll());
  trouble.Update(EndWaits(decisions));
  Count(decisions, now);
  Tell(decisions);
  return trouble;
}

std::vector<absl::Status> GangController::Send(const std::vector<Call>& calls) const {
  std::vector<absl::Status> results(calls.size(), absl::CancelledError("not sent"));
  std::atomic<size_t> next{0};
  std::atomic<bool> down{false};
  const auto work = [&] {
    // Who does not lead any more must not send, and a server that is away is not asked for each.
    for (size_t i = next++; i < calls.size() && leads_() && !down; i = next++) {
      results[i] =
          kube::Patch(*api_, calls[i].pod, kube::PatchType::kJson, calls[i].patch).status();
      if (!results[i].ok() && !IsRefusal(results[i])) down = true;
    }
  };
  std::vector<std::jthread> workers;
  for (size_t i = 0; i < std::min(kAtOnce, calls.size()); ++i) workers.emplace_back(work);
  workers.clear();  // when they are done
  return results;
}

absl::Status GangController::SendAll() {
  std::vector<Sent*> todo;
  std::vector<Call> calls;
  for (auto& [uid, sent] : sent_) {
    if (sent.done) continue;
    const StoredPod& pod = *sent.assignment.pod;
    todo.push_back(&sent);
    calls.push_back(
        {{"v1", "pods", pod.space, pod.name}, ReleasePatch(sent.assignment, sent.placement)});
  }
  const std::vector<absl::Status> results = Send(calls);
  absl::Status trouble;
  for (size_t i = 0; i < todo.size(); ++i) {
    todo[i]->done = results[i].ok();
    // What is not sent, or nobody knows of, keeps its place, and is sent again.
    if (results[i].ok() || (absl::IsCancelled(results[i]) && !trouble.ok())) continue;
    trouble.Update(results[i]);
    if (IsRefusal(results[i])) sent_.erase(todo[i]->assignment.pod->uid);
  }
  return trouble;
}

absl::Status GangController::EndWaits(const std::vector<Decision>& decisions) {
  absl::Status trouble;
  for (const Decision& decision : decisions) {
    if (decision.state != Decision::State::kTimedOut) continue;
    const bool fails = decision.gang.gated.front()->member->fails_at_timeout;
    std::vector<std::string> uids;
    std::vector<Call> calls;
    const std::vector<int> ranks = RanksOf(decision.gang);
    const std::string master = MasterOf(decision.gang);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const StoredPod& pod = *decision.gang.gated[i];
      if (given_up_.contains(pod.uid)) continue;
      uids.push_back(pod.uid);
      calls.push_back(
          {{"v1", "pods", pod.space, pod.name, fails ? "status" : ""},
           fails ? FailurePatch(pod, decision.message) : UngatePatch(pod, ranks[i], master)});
    }
    if (calls.empty()) continue;
    const std::vector<absl::Status> results = Send(calls);
    for (size_t i = 0; i < calls.size(); ++i) {
      // A pod that is another one by now, or was released meanwhile, waits no more either.
      if (results[i].ok() || IsRefusal(results[i])) given_up_.insert(uids[i]);
      if (!absl::IsCancelled(results[i])) trouble.Update(results[i]);
    }
    Told(events_.TimedOut(decision.gang, decision.message));
  }
  return trouble;
}

absl::Status GangController::DeleteRefused() {
  absl::Status trouble;
  const absl::Time now = options_.now();
  for (const PodValue& pod : refusals_.Due(pods_now_, now)) {
    const auto selector = pod->member->rules.selector.find(kHostname);
    const auto& names = room_->node_of_hostname();
    const auto node =
        selector == pod->member->rules.selector.end() ? names.end() : names.find(selector->second);
    const std::string name = node == names.end() ? "" : node->second;
    const bool comes_back = !pod->member->owner.uid.empty();
    if (comes_back && leads_()) {
      absl::Status deleted = kube::Delete(*api_, {"v1", "pods", pod->space, pod->name}, pod->uid,
                                          pod->member->resource_version);
      // It has changed: maybe it is bound.
      if (absl::IsAborted(deleted) || absl::IsNotFound(deleted)) continue;
      trouble.Update(deleted);
      if (!deleted.ok()) continue;
      spdlog::warn("gangs: pod {}/{} deleted: not bound to node {}", pod->space, pod->name, name);
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counts_.replanned;
    }
    refusals_.Avoid(GangKeyOf(*pod), name, now);
    Told(events_.Replanned(*pod, name, comes_back));
  }
  return trouble;
}

void GangController::Tell(const std::vector<Decision>& decisions) {
  std::set<std::string> keys;
  std::map<std::string, absl::Time> first_seen;
  const absl::Time now = options_.now();
  bool look_again = !sent_.empty();
  for (const Decision& decision : decisions) {
    const Gang& gang = decision.gang;
    keys.insert(gang.key);
    switch (decision.state) {
      case Decision::State::kRunning:
        look_again = look_again || std::any_of(gang.released.begin(), gang.released.end(),
                                               [](const Released& released) {
                                                 return released.pod->member->unschedulable;
                                               });
        break;
      case Decision::State::kPlaced: {
        const bool sent = std::all_of(decision.assignments.begin(), decision.assignments.end(),
                                      [this](const Assignment& assignment) {
                                        const auto found = sent_.find(assignment.pod->uid);
                                        return found != sent_.end() && found->second.done;
                                      });
        if (!sent) break;
        spdlog::info("gangs: {}/{}: {}", gang.space, gang.name, decision.message);
        Told(events_.IsPlaced(gang, decision.message));
        break;
      }
      case Decision::State::kIncomplete: {
        const auto seen = first_seen_.find(gang.key);
        const absl::Time first = seen == first_seen_.end() ? now : seen->second;
        first_seen[gang.key] = first;
        look_again = true;
        if (now - first >= kUntilMade) Told(events_.Waits(gang, decision.message));
        break;
      }
      case Decision::State::kWaiting:
        look_again = true;
        if (!decision.message.empty()) Told(events_.Waits(gang, decision.message));
        break;
      case Decision::State::kTimedOut:
        break;
    }
  }
  first_seen_ = std::move(first_seen);
  events_.KeepOnly(keys);
  if (look_again) rounds_.AskAfter(kLookAgain);
}

// An Event that is not told is no reason to do anything later.
void GangController::Told(const absl::Status& recorded) {
  const std::string now(recorded.message());
  if (now != untold_ && !recorded.ok()) spdlog::warn("gangs: no Event: {}", now);
  untold_ = now;
}

void GangController::Count(const std::vector<Decision>& decisions, absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_ = CountGangs(decisions, counts_, now);
}

GangCounts GangController::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

std::vector<kube::InformerState> GangController::States() const {
  std::vector<kube::InformerState> states = {pods_.State(), nodes_.State()};
  if (models_ != nullptr) states.push_back(models_->State());
  for (kube::InformerState& state : states) state.resource += " (gangs)";
  return states;
}

}  // namespace railhead::op::gangs
