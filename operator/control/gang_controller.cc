// SPDX-License-Identifier: Apache-2.0
#include "operator/control/gang_controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "operator/gangs/carry_out.h"
#include "operator/gangs/count_gangs.h"
#include "placement/topology/stored_topology.h"

namespace railhead::op::gangs {
namespace {

// Changes that come together are looked at together: the pods of a gang come one by one.
constexpr absl::Duration kChangesSettle = absl::Milliseconds(200);
constexpr absl::Duration kUntilCached = absl::Seconds(1);
// A younger incomplete gang is still being created: no Event.
constexpr absl::Duration kUntilMade = absl::Seconds(10);
constexpr kube::BackoffOptions kRoundBackoff = {absl::Milliseconds(500), absl::Seconds(30)};

}  // namespace

GangController::GangController(GangControllerOptions options, kube::Api* api, ClusterCaches* caches,
                               std::function<bool()> leads)
    : options_(std::move(options)),
      api_(api),
      caches_(caches),
      leads_(std::move(leads)),
      rounds_("gangs", kRoundBackoff),
      events_(api, options_.host, options_.now, options_.time_of_day),
      machine_(
          {options_.reserve_after, [this](const Gang& gang) { return events_.TakeTurn(gang); }}) {
  Subscribe(*caches);
}

void GangController::Subscribe(ClusterCaches& caches) {
  const auto on_synced = [this] { rounds_.Ask(); };
  caches.pods().Subscribe(
      [this](const std::string&, const auto& before, const auto& after) {
        const PodValue was = before == nullptr ? nullptr : before->held;
        const PodValue is = after == nullptr ? nullptr : after->held;
        if (was != is) rounds_.AskAfter(kChangesSettle);
      },
      on_synced);
  caches.nodes().Subscribe(
      [this](const std::string&, const NodeValue& before, const NodeValue& after) {
        const auto counts = [](const NodeValue& node) { return node != nullptr && HasRdma(*node); };
        if (counts(before) || counts(after)) rounds_.AskAfter(kChangesSettle);
      },
      on_synced);
  if (!options_.topology) return;
  caches.topologies().Subscribe(
      [this](const std::string&, const auto& before, const auto& after) {
        if (before != nullptr && after != nullptr && before->part == after->part) return;
        ++model_changes_;
        rounds_.AskAfter(kChangesSettle);
      },
      on_synced);
}

void GangController::OnLead() { rounds_.Ask(); }

void GangController::Run(const std::stop_token& stop) {
  const std::jthread sender(
      [this](const std::stop_token& stop_sending) { events_.queue().Run(stop_sending); });
  rounds_.Run(stop, [this] { return Round(); });
}

void GangController::TakeSnapshot() {
  pods_now_.clear();
  caches_->pods().cache().ForEach([this](const std::string&, const auto& pod) {
    if (pod->held != nullptr) pods_now_.push_back(pod->held);
  });
  const uint64_t model = model_changes_.load();  // before they are read
  const bool same_model = room_ != nullptr && model == tree_model_;
  if (same_model && caches_->nodes().cache().generation() == tree_generation_) return;
  std::vector<NodeValue> nodes;
  tree_generation_ =
      caches_->nodes().cache().ForEach([&](const std::string&, const NodeValue& node) {
        if (HasRdma(*node)) nodes.push_back(node);
      });
  // Most changes of nodes do not move them: taints, rails in use.
  if (same_model) {
    const std::optional<std::vector<size_t>> changed = ReplaceNodes(nodes, tree_);
    if (changed && std::all_of(changed->begin(), changed->end(),
                               [this](size_t node) { return room_->Refresh(node); })) {
      return;
    }
  }
  std::optional<fabric::FabricModel> given;
  if (options_.topology) {
    std::vector<topology::ModelPart> parts;
    caches_->topologies().cache().ForEach(
        [&](const std::string&, const auto& topology) { parts.push_back(topology->part); });
    given = model_.Of(std::move(parts)).value_or(std::nullopt);
    tree_model_ = model;
  }
  room_.reset();
  tree_ = BuildTree(nodes, given);
  room_ = std::make_unique<ClusterRoom>(&tree_, options_.rdma_resources);
}

absl::Status GangController::Round() {
  if (!leads_()) {
    // The new leader continues from the state of the pods.
    machine_.Forget();
    first_seen_.clear();
    Count({}, {});
    return absl::OkStatus();
  }
  // Wait until all caches are synced.
  if (!caches_->pods().Synced() || !caches_->nodes().Synced() ||
      (options_.topology && !caches_->topologies().Synced())) {
    rounds_.AskAfter(kUntilCached);
    return absl::OkStatus();
  }
  TakeSnapshot();
  const absl::Time now = options_.now();
  const GangMachine::Step step =
      machine_.Next(pods_now_, *room_, now, options_.server_time() - now);
  std::vector<Notice> notices = step.notices;
  std::set<std::string> carried_out;
  const absl::Status answered = Act(step, notices, carried_out);
  for (const Notice& notice : notices) events_.Notify(notice);
  Count(step.decisions, carried_out);
  const absl::Time tell_again = Tell(step.decisions, carried_out);
  const absl::Time again = std::min({step.look_again, machine_.NextTry(), tell_again});
  if (again != absl::InfiniteFuture()) {
    rounds_.AskAfter(std::max(kChangesSettle, again - options_.now()));
  }
  return answered;
}

absl::Status GangController::Act(const GangMachine::Step& step, std::vector<Notice>& notices,
                                 std::set<std::string>& carried_out) {
  const std::vector<std::vector<Result>> results = CarryOut(*api_, step.works, leads_);
  absl::Status answered;
  for (size_t i = 0; i < step.works.size(); ++i) {
    const Work& work = step.works[i];
    for (Notice& notice : machine_.Happened(work, results[i], options_.now())) {
      if (notice.kind == Notice::Kind::kEvicted) {
        spdlog::warn("gangs: {}/{}: {}", notice.pod->space, notice.pod->name, notice.text);
        const std::lock_guard<std::mutex> lock(mutex_);
        ++counts_.replanned;
      }
      notices.push_back(std::move(notice));
    }
    const auto failed =
        std::find_if(results[i].begin(), results[i].end(),
                     [](const Result& result) { return result.outcome != Result::Outcome::kDone; });
    if (failed == results[i].end()) {
      // Other works of a gang that is placed come before its release, and it waits for them.
      if (work.actions.front().kind == Action::Kind::kRelease) carried_out.insert(work.gang);
    } else if (failed->outcome == Result::Outcome::kUnknown) {
      answered.Update(absl::UnavailableError(failed->words));
    } else if (!work.again && !failed->words.empty()) {
      spdlog::warn("gangs: {}: {}", work.gang, failed->words);
    }
  }
  return answered;
}

absl::Time GangController::Tell(const std::vector<Decision>& decisions,
                                const std::set<std::string>& carried_out) {
  std::set<std::string> keys;
  std::vector<std::string> without_room;
  std::map<std::string, absl::Time> first_seen;
  const absl::Time now = options_.now();
  for (const Decision& decision : decisions) {
    const Gang& gang = decision.gang;
    keys.insert(gang.key);
    if (decision.state == Decision::State::kPlaced && carried_out.contains(gang.key)) {
      spdlog::info("gangs: {}/{}: {}", gang.space, gang.name, decision.message);
      events_.IsPlaced(gang, decision.message);
    } else if (decision.state == Decision::State::kIncomplete) {
      const auto seen = first_seen_.find(gang.key);
      const absl::Time first = seen == first_seen_.end() ? now : seen->second;
      first_seen[gang.key] = first;
      if (now - first >= kUntilMade) events_.IsIncomplete(gang, decision.message);
    } else if (decision.state == Decision::State::kWaiting) {
      without_room.push_back(gang.key);
      if (!decision.message.empty()) events_.HasNoRoom(gang, decision.message);
    }
  }
  first_seen_ = std::move(first_seen);
  return events_.EndRound(keys, without_room);
}

void GangController::Count(const std::vector<Decision>& decisions,
                           const std::set<std::string>& carried_out) {
  const absl::Time now = options_.server_time();
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_ = CountGangs(decisions, carried_out, counts_, now);
}

GangCounts GangController::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace railhead::op::gangs
