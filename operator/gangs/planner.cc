// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"
#include "operator/gangs/areas.h"
#include "operator/gangs/plan_words.h"
#include "operator/gangs/pools.h"
#include "operator/gangs/reservation.h"
#include "operator/objects/names.h"
#include "placement/node_room.h"
#include "placement/request.h"
#include "placement/score.h"
#include "placement/solver.h"

namespace railhead::op::gangs {
namespace {

using fabric::FabricModel;
using placement::PlacementRequest;
using State = Decision::State;

class Planner {
 public:
  Planner(const RefusedNodes& refused, ClusterRoom& room, const DecideOptions& options)
      : refused_(refused),
        room_(room),
        options_(options),
        tree_(room.tree()),
        domains_(room.domains()),
        areas_(&room, &options.failed_on) {}

  // Takes the room that is kept for a gang.
  void Keep(const Gang& gang) {
    for (const auto& [rank, node] : SeatsOf(gang)) room_.Take(node, LikeOf(gang));
  }

  // Chooses the namespace for whose gang room may be kept free now.
  void TakeTurns(const std::vector<Gang>& gangs) {
    std::set<std::string> wanting;
    const Gang* owner = nullptr;
    for (const Gang& gang : gangs) {
      if (!gang.released.empty()) spaces_on_nodes_.insert(gang.space);
      const bool owns = gang.key == options_.reserves;
      if (!owns && wanting.contains(gang.space)) continue;
      if (!MayReserve(gang) || !CanReserve(gang)) continue;
      wanting.insert(gang.space);
      if (owns) owner = &gang;
    }
    if (wanting.empty()) return;
    // The turn depends on the time alone, so it is the same for every leader, and does not change
    // if a user recreates a gang.
    const absl::Duration length =
        std::max(kShortestReservation, kReservations * options_.reserve_after);
    const int64_t turn = (options_.now - absl::UnixEpoch()) / length;
    if (turn % 2 != 0) return;
    // Else changes elsewhere would move the reservation to and fro, and it would never grow.
    if (owner != nullptr) {
      owner_ = owner->key;
      turn_ = owner->space;
      return;
    }
    const auto number = static_cast<ptrdiff_t>(static_cast<size_t>(turn / 2) % wanting.size());
    turn_ = *std::next(wanting.begin(), number);
  }

  Decision Plan(Gang gang) {
    Decision decision;
    decision.gang = std::move(gang);
    if (decision.gang.gated.empty()) return decision;
    // Recreated pods find their room free.
    const std::vector<int> ranks = RanksOf(decision.gang);
    std::vector<size_t> own;
    for (const auto& [rank, node] : SeatsOf(decision.gang)) {
      if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) own.push_back(node);
    }
    for (const size_t node : own) room_.GiveBack(node, LikeOf(decision.gang));
    PlanNow(decision);
    if (decision.state == State::kPlaced) return decision;
    for (const size_t node : own) room_.Take(node, LikeOf(decision.gang));
    return decision;
  }

 private:
  // One of the pods that run, which are all alike.
  static const PodValue& LikeOf(const Gang& gang) {
    const auto ours = std::find_if(gang.released.begin(), gang.released.end(),
                                   [](const Released& released) { return released.by_us; });
    return ours == gang.released.end() ? gang.gated.front() : ours->pod;
  }

  // The seats on nodes that there are.
  std::vector<std::pair<int, size_t>> SeatsOf(const Gang& gang) const {
    std::vector<std::pair<int, size_t>> seats;
    const auto found = options_.seats.find(gang.key);
    if (found == options_.seats.end() || !gang.begun()) return seats;
    for (const Seat& seat : found->second) {
      if (const std::optional<size_t> node = room_.IndexOf(seat.node)) {
        seats.emplace_back(seat.rank, *node);
      }
    }
    return seats;
  }

  void PlanNow(Decision& decision) {
    decision.message = WhyNotComplete(decision.gang);
    decision.state = State::kIncomplete;
    if (decision.message.empty()) Place(decision);
    const Membership& member = *decision.gang.gated.front()->member;
    if (decision.state != State::kPlaced && Waited(decision.gang) >= member.terms->timeout) {
      decision.state = State::kTimedOut;
      decision.notes.push_back(absl::StrCat(
          "waited for ", absl::FormatDuration(member.terms->timeout), " (", kTimeout,
          "): its pods ",
          member.terms->fails_at_timeout ? "fail" : "start one by one, wherever there is room"));
      decision.message = absl::StrCat(decision.notes.back(), decision.message.empty() ? "" : "; ",
                                      decision.message);
    }
  }

  absl::Duration Waited(const Gang& gang) const { return options_.now - gang.waits_since; }

  struct Asked {
    PlacementRequest request;
    std::optional<int> preferred;  // nullopt: no level, or one that the cluster does not have
    absl::Time patient_until;      // until then the preferred level is required
  };

  // The current request of a gang.
  Asked AskedBy(const Gang& gang) const {
    Asked asked = {RequestOf(gang, room_.rdma()), std::nullopt, absl::InfinitePast()};
    PlacementRequest& request = asked.request;
    asked.preferred = fabric::LevelIndex(tree_.model, request.prefer_level);
    if (!asked.preferred) {  // do not wait for an unknown level
      request.prefer_level.clear();
      return asked;
    }
    if (gang.begun()) return asked;
    asked.patient_until = gang.waits_since + gang.gated.front()->member->terms->prefer_wait;
    const std::optional<int> required = fabric::LevelIndex(tree_.model, request.require_level);
    // A required level that there is not stays one, and is an error.
    if (options_.now < asked.patient_until &&
        (request.require_level.empty() || (required && *required < *asked.preferred))) {
      request.require_level = request.prefer_level;
    }
    return asked;
  }

  void Place(Decision& decision) {
    const Gang& gang = decision.gang;
    if (IsChosenByOthers(gang)) {
      TakeChosen(decision);
      return;
    }
    const Membership& member = *gang.gated.front()->member;
    const Asked asked = AskedBy(gang);
    const PlacementRequest& request = asked.request;
    if (request.gpus_per_pod == 0 && request.hcas_per_pod == 0) {
      decision.message =
          absl::StrCat("pod ", gang.gated.front()->name,
                       " requests neither HCAs nor GPUs (spec.containers[].resources), by which "
                       "gangs are placed; remove its label ",
                       kGangLabel);
      return;
    }
    const bool first_of_its_own = gang.space != turn_ && !spaces_on_nodes_.contains(gang.space);
    const Outside kept_free = gang.begun() || first_of_its_own ? Outside() : kept_free_;
    if (gang.begun() && PlaceAtHome(decision, request)) return;

    Outside last;
    const std::vector<Outside> areas = areas_.Of(gang, request);
    for (const Outside& area : areas) {
      last = Both(area, kept_free);
      const std::optional<int> level = fabric::LevelIndex(tree_.model, request.require_level);
      const bool valid = request.require_level.empty() || level.has_value();
      if (valid && !room_.HasRoom(gang, request.pods, RefusedTo(gang), last, level)) continue;
      absl::StatusOr<placement::Placement> found =
          placement::Solve(room_.ModelFor(gang, RefusedTo(gang), last), request);
      if (!found.ok()) {
        decision.message =
            absl::StrCat("pod ", gang.gated.front()->name, ": ", found.status().message());
        return;
      }
      if (!found->placed) continue;
      AvoidFailed(gang, request, last, *found);
      const FabricModel& model = room_.ModelFor(gang, RefusedTo(gang), last);
      decision.state = State::kPlaced;
      decision.message = WherePlaced(model, found->node_of_rank, found->score);
      if (!member.terms->prefer_level.empty() && !asked.preferred) {
        absl::StrAppend(&decision.message, "; there is no level ", member.terms->prefer_level, " (",
                        kPreferLevel, ")");
      } else if (asked.preferred &&
                 found->score.domains[static_cast<size_t>(*asked.preferred)] > 1) {
        absl::StrAppend(&decision.message, "; no ", request.prefer_level, " had room for all (",
                        kPreferLevel, ")");
      }
      absl::StrAppend(&decision.message, AboutOtherRails(model, request, found->node_of_rank));
      Assign(found->node_of_rank, decision);
      return;
    }
    Wait(decision, request, last, asked.patient_until);
  }

  // Places the gang elsewhere in the same area if it is on nodes where its pods have failed, and no
  // other placement costs more domains.
  void AvoidFailed(const Gang& gang, const PlacementRequest& request, const Outside& area,
                   placement::Placement& found) {
    const auto failed = options_.failed_on.find(gang.lineage);
    if (failed == options_.failed_on.end() ||
        std::none_of(found.node_of_rank.begin(), found.node_of_rank.end(), [&](int node) {
          return failed->second.contains(tree_.model.nodes[static_cast<size_t>(node)].name);
        })) {
      return;
    }
    absl::StatusOr<placement::Placement> other = placement::Solve(
        room_.ModelFor(gang, RefusedTo(gang), Both(area, areas_.FailedThere(gang))), request);
    if (other.ok() && other->placed && other->score.domains <= found.score.domains) {
      found = *std::move(other);
    }
  }

  void Wait(Decision& decision, const PlacementRequest& request, const Outside& outside,
            absl::Time patient_until) {
    const Gang& gang = decision.gang;
    decision.state = State::kWaiting;
    decision.message.clear();
    const bool is_next = owner_.empty() ? turn_ == gang.space : owner_ == gang.key;
    if (kept_for_.empty() && is_next && MayReserve(gang)) KeepFree(gang, request);
    decision.reserves = kept_for_ == gang.key;
    if (owner_ == gang.key) owner_.clear();  // it has it, or another one may
    const bool asked = options_.explain == nullptr || options_.explain(gang);
    const bool ends = Waited(gang) >= gang.gated.front()->member->terms->timeout;
    if (!asked && (!ends || ++ends_explained_ > kMostEndsExplained)) return;
    const FabricModel& model = room_.ModelFor(gang, RefusedTo(gang), outside);
    const bool patient = options_.now < patient_until;
    auto reasons =
        patient ? WhyPatient(model, gang, request) : placement::WhyNotPlaced(model, request);
    if (!reasons.ok()) {
      decision.message = std::string(reasons.status().message());
      return;
    }
    decision.reasons = *std::move(reasons);
    const int64_t missing = Missing(model, request);
    if (std::string pools = AboutPools(tree_, room_.OutlookFor(gang, RefusedTo(gang)), missing);
        !pools.empty()) {
      decision.notes.push_back(std::move(pools));
    }
    if (patient) {
      decision.notes.push_back(
          absl::StrCat("it waits for one ", request.require_level, " until ",
                       absl::FormatTime("%H:%M:%S", patient_until, absl::UTCTimeZone()), " UTC (",
                       kPreferWait, ")"));
    }
    if (decision.reserves) {
      decision.notes.push_back(absl::StrCat(
          kept_nodes_, kept_nodes_ == 1 ? " node is" : " nodes are", " reserved for it",
          options_.reserve_after > absl::ZeroDuration()
              ? absl::StrCat(", because it has waited for more than ",
                             absl::FormatDuration(options_.reserve_after))
              : ""));
    }
    decision.message = InWords(decision.reasons, decision.notes);
  }

  // Explains why a gang waits that accepts only the level it prefers, for now.
  static absl::StatusOr<std::vector<placement::Reason>> WhyPatient(
      const FabricModel& model, const Gang& gang, const PlacementRequest& request) {
    PlacementRequest later = request;
    later.require_level = gang.gated.front()->member->terms->require_level;
    auto reasons = placement::WhyNotPlaced(model, later);
    if (!reasons.ok() || !reasons->empty()) return reasons;
    reasons = placement::WhyNotPlaced(model, request);
    if (!reasons.ok()) return reasons;
    for (placement::Reason& reason : *reasons) {
      if (reason.kind != placement::Reason::Kind::kChange || reason.what != "requireLevel") {
        continue;
      }
      reason.what = kPreferWait;
      reason.message = absl::StrCat("fits without ", kPreferWait);
    }
    return reasons;
  }

  // Returns the number of pods without room in the largest domain, or in the whole fabric.
  int64_t Missing(const FabricModel& model, const PlacementRequest& request) const {
    const std::optional<int> level = fabric::LevelIndex(tree_.model, request.require_level);
    std::map<int, int64_t> rooms;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      rooms[level ? domains_[static_cast<size_t>(*level)][i] : 0] +=
          request.same_rails ? placement::RoomForSameRails(model.nodes[i], request)
                             : placement::RoomOnNode(model.nodes[i], request).pods;
    }
    int64_t most = 0;
    for (const auto& [domain, room] : rooms) most = std::max(most, room);
    return request.pods - most;
  }

  const std::set<std::string>& RefusedTo(const Gang& gang) const {
    static const std::set<std::string> kNone;
    const auto refused = refused_.find(gang.key);
    return refused == refused_.end() ? kNone : refused->second;
  }

  bool MayReserve(const Gang& gang) const {
    return !gang.gated.empty() && !gang.begun() && Waited(gang) >= options_.reserve_after;
  }

  // Returns whether the gang would fit if everything else ended. A reservation for another would
  // only waste its namespace's turn.
  bool CanReserve(const Gang& gang) {
    if (options_.put_off.contains(gang.key) || IsChosenByOthers(gang)) return false;
    return WhyNotComplete(gang).empty() && FitsWhenFree(gang, AskedBy(gang).request);
  }

  bool FitsWhenFree(const Gang& gang, const PlacementRequest& request) {
    const std::optional<int> level = fabric::LevelIndex(tree_.model, request.require_level);
    if (!level && !request.require_level.empty()) return false;
    return room_.MostRoomWhenFree(gang, level) >= request.pods;
  }

  void KeepFree(const Gang& gang, const PlacementRequest& request) {
    if (!FitsWhenFree(gang, request)) return;
    const std::optional<int> level = fabric::LevelIndex(tree_.model, request.require_level);
    const std::vector<int> everywhere(tree_.nodes.size(), 0);
    const std::vector<size_t> kept =
        NodesToKeepFree(room_.OutlookFor(gang, RefusedTo(gang)),
                        level ? domains_[static_cast<size_t>(*level)] : everywhere, request.pods);
    if (kept.empty()) return;
    kept_for_ = gang.key;
    kept_nodes_ = kept.size();
    auto exclusion = std::make_shared<Exclusion>();
    exclusion->why = absl::StrCat("reserved for ", gang.name, ", which has waited long");
    exclusion->nodes.resize(tree_.nodes.size());
    for (const size_t node : kept) exclusion->nodes[node] = 1;
    kept_free_.push_back(std::move(exclusion));
  }

  // Checks a placement that another scheduler chose, which knows quota and other jobs: whether all
  // pods can start there, and its quality.
  void TakeChosen(Decision& decision) {
    const Gang& gang = decision.gang;
    // The pods differ in the choice only, so one without it represents all.
    auto pod = std::make_shared<StoredPod>(*gang.gated.front());
    pod->member->rules.Change([](NodeRules& rules) { rules.selector.clear(); });
    Gang alike = gang;
    alike.gated = {std::move(pod)};
    const FabricModel& model = room_.ModelFor(alike, {}, {});
    PlacementRequest request = RequestOf(gang, room_.rdma());
    std::map<size_t, int> pods_of_node;
    std::vector<int> nodes;
    for (const PodValue& gated : gang.gated) {
      const std::string& hostname = gated->member->rules->selector.at(kHostname);
      const auto name = room_.node_of_hostname().find(hostname);
      const std::optional<size_t> node =
          name == room_.node_of_hostname().end() ? std::nullopt : room_.IndexOf(name->second);
      if (!node) {
        decision.message = absl::StrCat("pod ", gated->name, ": no node with HCAs has the label ",
                                        kHostname, "=", hostname, " (spec.nodeSelector)");
        return;
      }
      ++pods_of_node[*node];
      nodes.push_back(static_cast<int>(*node));
    }
    decision.state = State::kWaiting;
    for (const auto& [node, pods] : pods_of_node) {
      const placement::NodeRoom room = placement::RoomOnNode(model.nodes[node], request);
      if (room.pods >= pods) continue;
      decision.message = absl::StrCat(
          "node ", model.nodes[node].name, ", which spec.nodeSelector names, has room for ",
          room.pods, " of ", pods, pods == 1 ? " pod" : " pods",
          room.obstacle == placement::Obstacle::kNone
              ? ""
              : absl::StrCat(": ", placement::Describe(room.obstacle, model.nodes[node])));
      return;
    }
    decision.state = State::kPlaced;
    const placement::Score score = placement::ScoreOf(model, request, nodes);
    decision.message =
        absl::StrCat(WherePlaced(model, nodes, score), "; the pods' nodeSelector chose the nodes");
    for (size_t level = 0; level < score.domains.size(); ++level) {
      const int least = score.domains[level] > 1 ? score.domains[level] : 0;
      if (score.ring_crossings[level] <= least) continue;
      absl::StrAppend(&decision.message,
                      ", and ranks do not follow the fabric: ", score.ring_crossings[level],
                      " neighbours in rank are in different domains of ", model.levels[level],
                      " (minimum: ", least, ")");
    }
    if (score.rail_mismatches > 0) {
      absl::StrAppend(&decision.message, ", and ", score.rail_mismatches,
                      " neighbours in rank are given different rails");
    }
    Assign(nodes, decision);
  }

  void Assign(const std::vector<int>& node_of_rank, Decision& decision) {
    const Gang& gang = decision.gang;
    const std::vector<int> ranks = RanksOf(gang);
    const std::string master = MasterOf(gang);
    for (size_t i = 0; i < gang.gated.size(); ++i) {
      const auto node = static_cast<size_t>(node_of_rank[i]);
      decision.assignments.push_back({gang.gated[i], tree_.model.nodes[node].name,
                                      tree_.nodes[node]->hostname, ranks[i], master});
      room_.Take(node, gang.gated[i]);
    }
    decision.placement = NameOf(gang, decision.assignments);
  }

  // Places each pod of a gang that has begun in the innermost domain of its neighbour in rank.
  // Returns false if not all fit.
  bool PlaceAtHome(Decision& decision, const PlacementRequest& request) {
    const Gang& gang = decision.gang;
    const std::vector<int>& leaf_of_node = domains_.back();
    std::map<int, size_t> node_of_rank;
    for (const Released& released : gang.released) {
      const std::optional<size_t> node = room_.IndexOf(released.node);
      if (node && released.rank) node_of_rank[*released.rank] = *node;
    }
    if (node_of_rank.empty()) return false;
    const std::vector<int> ranks = RanksOf(gang);
    std::map<int, std::vector<size_t>> pods_of_leaf;  // indices of gated pods
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto after = node_of_rank.lower_bound(ranks[i]);
      auto nearest = after;
      if (after == node_of_rank.end() ||
          (after != node_of_rank.begin() &&
           ranks[i] - std::prev(after)->first <= after->first - ranks[i])) {
        nearest = std::prev(after);
      }
      pods_of_leaf[leaf_of_node[nearest->second]].push_back(i);
    }
    std::vector<int> found_nodes(ranks.size());
    for (const auto& [leaf, pods] : pods_of_leaf) {
      PlacementRequest part = request;
      part.pods = static_cast<int>(pods.size());
      part.require_level.clear();
      const Outside elsewhere =
          areas_.Excluding("not beside its neighbours in rank",
                           [&, home = leaf](size_t node) { return leaf_of_node[node] != home; });
      std::optional<std::vector<int>> nodes;
      const Outside alike = Both(elsewhere, areas_.OtherRails(gang, request));
      std::vector<Outside> areas;
      if (const Outside failed = areas_.FailedThere(gang); !failed.empty()) {
        areas.push_back(Both(alike, failed));
      }
      areas.push_back(alike);
      if (!request.same_rails) areas.push_back(elsewhere);
      for (const Outside& area : areas) {
        if (!room_.HasRoom(gang, part.pods, RefusedTo(gang), area, std::nullopt)) continue;
        const absl::StatusOr<placement::Placement> found =
            placement::Solve(room_.ModelFor(gang, RefusedTo(gang), area), part);
        if (!found.ok() || !found->placed) continue;
        nodes = found->node_of_rank;
        break;
      }
      if (!nodes) return false;
      for (size_t i = 0; i < pods.size(); ++i) found_nodes[pods[i]] = (*nodes)[i];
    }
    decision.state = State::kPlaced;
    const placement::Score score =
        placement::ScoreOf(room_.ModelFor(gang, {}, {}), request, found_nodes);
    decision.message = absl::StrCat(WherePlaced(tree_.model, found_nodes, score),
                                    ", beside their neighbours in rank");
    Assign(found_nodes, decision);
    return true;
  }

  // Maximum number of gangs that time out in one round whose message gives the reasons.
  static constexpr int kMostEndsExplained = 4;

  const RefusedNodes& refused_;
  ClusterRoom& room_;
  const DecideOptions& options_;
  const NodeTree& tree_;
  const std::vector<std::vector<int>>& domains_;  // [level][node]
  Areas areas_;
  std::set<std::string> spaces_on_nodes_;  // namespaces with gangs that have begun
  std::optional<std::string> turn_;        // the namespace for whose gang room may be kept
  std::string owner_;     // key of the gang that keeps its reservation; empty: turn_ alone decides
  std::string kept_for_;  // a gang's key; empty: nothing is kept free
  size_t kept_nodes_ = 0;
  Outside kept_free_;
  int ends_explained_ = 0;
};

}  // namespace

std::vector<Decision> Decide(std::vector<Gang> gangs, const RefusedNodes& refused,
                             ClusterRoom& room, const DecideOptions& options) {
  Planner planner(refused, room, options);
  std::vector<Decision> decisions;
  decisions.reserve(gangs.size());
  std::stable_partition(gangs.begin(), gangs.end(), [&](const Gang& gang) {
    return gang.begun() || !options.put_off.contains(gang.key);
  });
  planner.TakeTurns(gangs);
  for (const Gang& gang : gangs) planner.Keep(gang);
  for (Gang& gang : gangs) decisions.push_back(planner.Plan(std::move(gang)));
  return decisions;
}

}  // namespace railhead::op::gangs
