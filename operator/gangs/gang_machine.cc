// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_machine.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/gangs/native_ranks.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using Kind = Action::Kind;
using Outcome = Result::Outcome;

// Scheduler messages that concern the node named in the pod's nodeSelector: these filters run after
// that of the selector, and earlier ones may concern any node.
constexpr absl::string_view kNoRoom[] = {"Insufficient ", "Too many pods", "free ports",
                                         "anti-affinity"};

// The node that a released pod was sent to; empty: it is gone.
std::string NodeOf(const StoredPod& pod, const ClusterRoom& room) {
  const auto selector = pod.member->rules->selector.find(kHostname);
  if (selector == pod.member->rules->selector.end()) return "";
  const auto name = room.node_of_hostname().find(selector->second);
  return name == room.node_of_hostname().end() ? "" : name->second;
}

// Returns whether its node, not the pod itself, is the reason that a pod is not bound.
bool IsForRoom(const StoredPod& pod, const std::string& node, const ClusterRoom& room) {
  const std::optional<size_t> index = room.IndexOf(node);
  if (!index) return true;
  const StoredNode& there = *room.tree().nodes[*index];
  if (there.cordoned || !there.ready) return true;
  return std::any_of(std::begin(kNoRoom), std::end(kNoRoom), [&](absl::string_view words) {
    return absl::StrContains(*pod.member->unschedulable_why, words);
  });
}

bool MayBeEvicted(const Membership& member) {
  using Eviction = jobs::Kind::Eviction;
  const Eviction eviction = member.terms->kind->eviction;
  return eviction == Eviction::kMadeAgain ||
         (eviction == Eviction::kMayCost && member.terms->evictable);
}

std::string WhatToDo(const Membership& member, bool for_room) {
  if (!for_room) return "it stays unchanged until this is fixed";
  const jobs::Kind& kind = *member.terms->kind;
  if (kind.eviction == jobs::Kind::Eviction::kIsTheEnd) {
    return "it has no controller that would recreate it: delete and recreate it yourself";
  }
  return absl::StrCat(
      "it is not evicted, because its owner may count that as a failure: make room there",
      kind.evictable.empty() ? "" : ", or ", kind.evictable, " when you recreate it");
}

std::string InTheWay(const StoredPod& pod, const std::string& node) {
  return absl::StrCat(
      "pod ", pod.name, " was assigned to node ", node.empty() ? "(gone)" : node,
      ", but the scheduler does not bind it there: ",
      pod.member->unschedulable_why->empty() ? "no reason given" : *pod.member->unschedulable_why);
}

// Until when kube-scheduler may be placing pods of PodGroups that have just come, by the clock that
// has stamped them; InfinitePast: it has answered for all of them.
absl::Time SchedulingUntil(const std::vector<PodValue>& pods) {
  absl::Time until = absl::InfinitePast();
  for (const PodValue& pod : pods) {
    if (!pod->member || !pod->member->native || pod->member->unschedulable || pod->leaving ||
        !pod->node.empty()) {
      continue;
    }
    until = std::max(until, pod->member->created + GangMachine::kUntilScheduled);
  }
  return until;
}

Action Release(const Assignment& assignment, const std::string& placement) {
  Action action;
  action.assignment = assignment;
  action.placement = placement;
  return action;
}

Action About(Kind kind, const PodValue& pod) {
  Action action;
  action.kind = kind;
  action.assignment.pod = pod;
  return action;
}

}  // namespace

void GangMachine::Forget() {
  sent_.clear();
  given_up_.clear();
  ranked_.clear();
  alone_.clear();
  reserves_.clear();
  held_since_ = absl::InfiniteFuture();
  refusals_ = Refusals();
  attempts_ = Attempts();
  seats_ = Seats();
}

void GangMachine::ForgetWhatIsShown(const std::vector<PodValue>& pods) {
  if (sent_.empty() && given_up_.empty() && ranked_.empty()) return;
  std::unordered_set<std::string_view> gated;
  std::unordered_set<std::string_view> without_rank;
  for (const PodValue& pod : pods) {
    if (pod->member && pod->member->gate) gated.insert(pod->uid);
    if (pod->member && pod->member->wants_rank) without_rank.insert(pod->uid);
  }
  std::erase_if(ranked_, [&](const std::string& uid) { return !without_rank.contains(uid); });
  std::erase_if(sent_, [&](const auto& entry) { return !gated.contains(entry.first); });
  std::erase_if(given_up_, [&](const std::string& uid) { return !gated.contains(uid); });
}

Promises GangMachine::PromisesMade() const {
  Promises promises;
  for (const auto& [uid, sent] : sent_) promises[uid] = sent.promise;
  return promises;
}

void GangMachine::EndStuckPods(const std::vector<PodValue>& pods, const ClusterRoom& room,
                               absl::Time now, Step& step) {
  for (const PodValue& pod : refusals_.Due(pods, now)) {
    const std::string gang = GangKeyOf(*pod);
    const std::string node = NodeOf(*pod, room);
    const bool for_room = IsForRoom(*pod, node, room);
    if (!for_room || !MayBeEvicted(*pod->member)) {
      step.notices.push_back(
          {Notice::Kind::kBlocked, gang, pod,
           absl::StrCat(InTheWay(*pod, node), "; ", WhatToDo(*pod->member, for_room))});
    } else if (attempts_.Due(gang, now)) {
      Work work = {gang, {About(Kind::kEvict, pod)}};
      work.actions.front().assignment.node = node;
      step.works.push_back(std::move(work));
    }
  }
}

void GangMachine::LookForLostAnswers(const std::vector<PodValue>& pods, absl::Time now,
                                     Step& step) {
  std::map<std::string, Work> by_gang;
  for (const PodValue& pod : pods) {
    const auto sent = sent_.find(pod->uid);
    if (sent == sent_.end() || sent->second.known || !attempts_.Due(sent->second.gang, now)) {
      continue;
    }
    Work& work = by_gang[sent->second.gang];
    work.gang = sent->second.gang;
    work.actions.push_back(About(Kind::kLook, pod));
  }
  for (auto& [gang, work] : by_gang) step.works.push_back(std::move(work));
}

// Whose owner makes a pod when the one before it runs waits for ever at the first one that waits.
void GangMachine::EndOrdered(const std::vector<Decision>& decisions, absl::Time now, Step& step) {
  std::map<std::string, absl::Time> alone;
  for (const Decision& decision : decisions) {
    const Gang& gang = decision.gang;
    if (decision.state != Decision::State::kIncomplete || gang.gated.size() != 1) continue;
    const PodValue& pod = gang.gated.front();
    const absl::string_view at_once = pod->member->terms->kind->at_once;
    if (at_once.empty() || gang.begun() || given_up_.contains(pod->uid)) continue;
    const auto seen = alone_.find(pod->uid);
    const absl::Time since = seen == alone_.end() ? now : seen->second;
    alone[pod->uid] = since;
    // If the first pods of a gang had to start alone, the others must, too.
    const bool known = !gang.released.empty() || gang.succeeded > 0;
    if ((!known && now - since < kUntilOrdered) || !attempts_.Due(gang.key, now)) continue;
    Action action = About(Kind::kUngate, pod);
    action.assignment.rank = RanksOf(gang).front();
    action.assignment.master = MasterOf(gang);
    step.works.push_back({gang.key, {std::move(action)}});
    step.notices.push_back(
        {Notice::Kind::kOrdered, gang.key, pod,
         absl::StrCat(
             "its pods are created one after the other, so they do not wait for each other: "
             "the scheduler places each alone; to start them together, ",
             at_once)});
  }
  alone_ = std::move(alone);
}

Work GangMachine::EndWait(const Decision& decision) const {
  const Gang& gang = decision.gang;
  const bool fails = gang.gated.front()->member->terms->fails_at_timeout;
  const std::vector<int> ranks = RanksOf(gang);
  const std::string master = MasterOf(gang);
  Work work;
  work.gang = gang.key;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (given_up_.contains(gang.gated[i]->uid)) continue;
    Action action = About(fails ? Kind::kFail : Kind::kUngate, gang.gated[i]);
    action.assignment.rank = ranks[i];
    action.assignment.master = master;
    action.why = decision.message;
    work.actions.push_back(std::move(action));
  }
  return work;
}

// For pods that the scheduler places: removes gates that they have anyway, and sets ranks.
void GangMachine::LeaveToScheduler(const Decision& decision, const ClusterRoom& room,
                                   Step& step) const {
  const Gang& gang = decision.gang;
  Work work;
  work.gang = gang.key;
  for (const Released& released : gang.released) {
    const Membership& member = *released.pod->member;
    if (!member.native || !member.gate || given_up_.contains(released.pod->uid)) continue;
    work.actions.push_back(About(Kind::kUngate, released.pod));
  }
  for (Assignment& assignment : RanksByPlace(gang, room)) {
    if (ranked_.contains(assignment.pod->uid)) continue;
    Action& action = work.actions.emplace_back();
    action.kind = Kind::kTellRank;
    action.assignment = std::move(assignment);
  }
  if (!work.actions.empty()) step.works.push_back(std::move(work));
}

// Puts gangs without failures first, so that they do not wait for a server that does not respond to
// requests about others.
void GangMachine::KeepBounds(size_t tries_again, std::vector<Work>& works) const {
  for (Work& work : works) work.again = attempts_.FailuresOf(work.gang) > 0;
  const auto again = std::stable_partition(works.begin(), works.end(),
                                           [](const Work& work) { return !work.again; });
  // The others follow by their number of failures, so that recent ones are not delayed.
  std::stable_sort(again, works.end(), [this](const Work& a, const Work& b) {
    return attempts_.FailuresOf(a.gang) < attempts_.FailuresOf(b.gang);
  });
  const auto room = static_cast<ptrdiff_t>(tries_again);
  if (works.end() - again > room) works.erase(again + room, works.end());
}

// Returns until when releases wait. Under a constant stream of new PodGroups they wait only once.
absl::Time GangMachine::HeldUntil(absl::Time scheduling_until, absl::Time now) {
  if (now >= scheduling_until) {
    held_since_ = absl::InfiniteFuture();
    return absl::InfinitePast();
  }
  held_since_ = std::min(held_since_, now);
  return std::min(scheduling_until, held_since_ + kUntilScheduled);
}

GangMachine::Step GangMachine::Next(const std::vector<PodValue>& pods, ClusterRoom& room,
                                    absl::Time now, absl::Duration stamps_ahead) {
  Step step;
  ForgetWhatIsShown(pods);
  const Promises promises = PromisesMade();
  room.Update(pods, promises);
  std::vector<Gang> gangs = GangsOf(pods, promises, room.node_of_hostname());
  std::set<std::string> keys;
  std::map<std::string, PodValue> one_of;  // its first pod that is still there
  for (const Gang& gang : gangs) {
    keys.insert(gang.key);
    if (!gang.gated.empty()) one_of[gang.key] = gang.gated.front();
    if (!gang.released.empty()) one_of.try_emplace(gang.key, gang.released.front().pod);
  }
  attempts_.KeepOnly(keys);
  seats_.Update(gangs, now);
  DecideOptions options;
  options.now = now + stamps_ahead;
  options.reserve_after = options_.reserve_after;
  options.reserves = std::exchange(reserves_, "");
  options.explain = options_.explain;
  options.seats = seats_.empty();
  options.failed_on = seats_.FailedOn(now);
  options.put_off = attempts_.Failing();
  EndStuckPods(pods, room, now, step);
  LookForLostAnswers(pods, now, step);
  step.decisions = Decide(std::move(gangs), refusals_.Nodes(now), room, options);
  // Sends no further actions for a gang that is losing a pod, or that has an action whose result is
  // unknown, until that is settled.
  std::set<std::string> unsettled;
  for (const Work& work : step.works) unsettled.insert(work.gang);
  EndOrdered(step.decisions, now, step);
  bool look_again = !sent_.empty();
  std::set<std::string> busy;  // gangs with work, now or soon
  const absl::Time held_until = HeldUntil(SchedulingUntil(pods) - stamps_ahead, now);
  step.look_again = absl::InfiniteFuture();
  for (const Decision& decision : step.decisions) {
    const Gang& gang = decision.gang;
    if (decision.reserves) reserves_ = gang.key;
    const bool due = attempts_.Due(gang.key, now) && !unsettled.contains(gang.key);
    switch (decision.state) {
      case Decision::State::kRunning:
        if (due) LeaveToScheduler(decision, room, step);
        look_again = look_again || std::any_of(gang.released.begin(), gang.released.end(),
                                               [](const Released& released) {
                                                 const Membership& member = *released.pod->member;
                                                 return member.unschedulable && !member.native;
                                               });
        break;
      case Decision::State::kPlaced: {
        if (!due) break;
        if (now < held_until) {
          step.look_again = held_until;
          busy.insert(gang.key);
          break;
        }
        Work work;
        work.gang = gang.key;
        for (const Assignment& assignment : decision.assignments) {
          work.actions.push_back(Release(assignment, decision.placement));
        }
        step.works.push_back(std::move(work));
        break;
      }
      case Decision::State::kTimedOut:
        if (Work work = EndWait(decision); due && !work.actions.empty()) {
          step.notices.push_back(
              {Notice::Kind::kTimedOut, gang.key, gang.gated.front(), decision.message});
          step.works.push_back(std::move(work));
        }
        break;
      case Decision::State::kIncomplete:
      case Decision::State::kWaiting:
        look_again = true;
        break;
    }
    const auto pod = one_of.find(gang.key);
    if (std::string words = attempts_.WordsAbout(gang.key); !words.empty() && pod != one_of.end()) {
      step.notices.push_back(
          {Notice::Kind::kBlocked, gang.key, pod->second,
           absl::StrCat("the API server rejects a request for this gang (retrying): ", words)});
    }
  }
  for (const Work& work : step.works) busy.insert(work.gang);
  // Else a rejected action that is no longer needed would be due forever.
  attempts_.ForgetIdle(busy, now);
  KeepBounds(kTriesAgain, step.works);
  step.look_again = std::min({step.look_again, attempts_.NextDue(), seats_.NextEnd()});
  if (look_again) step.look_again = std::min(step.look_again, now + kLookAgain);
  return step;
}

std::vector<Notice> GangMachine::Happened(const Work& work, const std::vector<Result>& results,
                                          absl::Time now) {
  std::vector<Notice> notices;
  std::string refused;
  bool all = true;
  for (size_t i = 0; i < work.actions.size(); ++i) {
    const Action& action = work.actions[i];
    const Assignment& there = action.assignment;
    const std::string& uid = there.pod->uid;
    const Outcome outcome = results[i].outcome;
    all = all && outcome == Outcome::kDone;
    // kLook: that it still waits is an answer, and not a failure.
    if (outcome == Outcome::kNotDone && action.kind != Kind::kLook && refused.empty()) {
      refused = absl::StrCat("pod ", there.pod->name, ": ", results[i].words);
    }
    switch (action.kind) {
      case Kind::kRelease:
        if (outcome == Outcome::kDone || outcome == Outcome::kUnknown) {
          sent_[uid] = {{there.node, there.hostname, there.rank, action.placement},
                        work.gang,
                        outcome == Outcome::kDone};
        }
        break;
      case Kind::kLook:
        if (outcome == Outcome::kDone) sent_[uid].known = true;
        if (outcome == Outcome::kNotDone) sent_.erase(uid);
        break;
      case Kind::kTellRank:
        if (outcome == Outcome::kDone) ranked_.insert(uid);
        break;
      case Kind::kUngate:
      case Kind::kFail:
        if (outcome == Outcome::kDone) given_up_.insert(uid);
        break;
      case Kind::kEvict:
        if (outcome != Outcome::kDone) break;
        refusals_.Avoid(work.gang, there.node, now);
        notices.push_back(
            {Notice::Kind::kEvicted, work.gang, there.pod,
             absl::StrCat(InTheWay(*there.pod, there.node),
                          "; evicted, so that its owner recreates it and it is placed again; "
                          "check whether another scheduler uses these nodes")});
        break;
    }
  }
  if (!refused.empty()) {
    attempts_.Failed(work.gang, std::move(refused), now);
  } else if (all) {
    attempts_.Worked(work.gang);
  }
  return notices;
}

}  // namespace railhead::op::gangs
