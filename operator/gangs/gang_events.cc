// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_events.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace railhead::op::gangs {
namespace {

constexpr absl::Duration kBetweenReasons = absl::Minutes(1);
// Interval between equal messages.
constexpr absl::Duration kUntilRepeated = absl::Minutes(30);
// For the whole cluster.
constexpr kube::EventLimits kLimits = {200, absl::Milliseconds(500)};

kube::Event About(const jobs::Owner& owner, const StoredPod& pod) {
  kube::Event event;
  event.space = pod.space;
  if (owner.uid.empty()) {
    event.api = "v1";
    event.kind = "Pod";
    event.name = pod.name;
    event.uid = pod.uid;
  } else {
    event.api = owner.api;
    event.kind = owner.kind;
    event.name = owner.name;
    event.uid = owner.uid;
  }
  return event;
}

const char* ReasonOf(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kBlocked:
      return "GangBlocked";
    case Notice::Kind::kEvicted:
      return "GangReplanned";
    case Notice::Kind::kOrdered:
      return "GangOrdered";
    case Notice::Kind::kTimedOut:
      return "GangTimedOut";
  }
  return "";
}

}  // namespace

GangEvents::GangEvents(kube::Api* api, std::string host, std::function<absl::Time()> now,
                       const std::function<absl::Time()>& time_of_day)
    : now_(std::move(now)),
      queue_({},
             kube::EventRecorder(api, "railhead-operator", std::move(host), time_of_day, kLimits),
             kube::SystemRandom(), time_of_day,
             [](const std::string& line) { spdlog::warn("gangs: {}", line); }) {}

void GangEvents::Waits(const Gang& gang, const std::string& why) {
  const absl::Time now = now_();
  if (const auto told = waiting_.find(gang.key); told != waiting_.end() &&
                                                 told->second.message == why &&
                                                 now - told->second.sent < kUntilRepeated) {
    told->second.at = now;
    return;
  }
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.warning = true;
  event.reason = IsTooLarge(gang) ? "GangNotPossible" : "GangWaiting";
  event.message = why;
  queue_.Add(std::move(event), gang.key);
  waiting_[gang.key] = {why, now, now};
}

void GangEvents::HasNoRoom(const Gang& gang, const std::string& why) {
  turns_.HasTaken(gang.key) ? Waits(gang, why) : IsIncomplete(gang, why);
}

void GangEvents::IsIncomplete(const Gang& gang, const std::string& why) {
  const auto told = waiting_.find(gang.key);
  if (told != waiting_.end() && now_() - told->second.at < kBetweenReasons) return;
  Waits(gang, why);
}

void GangEvents::IsPlaced(const Gang& gang, const std::string& where) {
  waiting_.erase(gang.key);
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.reason = "GangPlaced";
  event.message = where;
  queue_.Add(std::move(event), gang.key);
}

void GangEvents::Notify(const Notice& notice) {
  const absl::Time now = now_();
  if (notice.kind == Notice::Kind::kTimedOut) waiting_.erase(notice.gang);
  if (notice.kind == Notice::Kind::kBlocked) {
    std::map<std::string, Told>& told = blocked_[notice.gang];
    if (const auto last = told.find(notice.pod->uid); last != told.end()) {
      const bool same = last->second.message == notice.text;
      if (now - last->second.sent < (same ? kUntilRepeated : kBetweenReasons)) return;
    }
    told[notice.pod->uid] = {notice.text, now, now};
  }
  kube::Event event = About(notice.pod->member->terms->owner, *notice.pod);
  event.warning = true;
  event.reason = ReasonOf(notice.kind);
  event.message = notice.text;
  queue_.Add(std::move(event), notice.gang);
}

absl::Time GangEvents::EndRound(const std::set<std::string>& gangs,
                                const std::vector<std::string>& without_room) {
  const auto gone = [&](const auto& entry) { return !gangs.contains(entry.first); };
  std::erase_if(waiting_, gone);
  std::erase_if(blocked_, gone);
  for (const std::string& gang : queue_.TakeLost()) {
    if (const auto told = waiting_.find(gang); told != waiting_.end()) told->second.message.clear();
    if (const auto told = blocked_.find(gang); told != blocked_.end()) {
      for (auto& [pod, of_pod] : told->second) of_pod.message.clear();
    }
  }
  return turns_.EndRound(without_room, now_());
}

}  // namespace railhead::op::gangs
