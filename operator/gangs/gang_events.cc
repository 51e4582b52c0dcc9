// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_events.h"

#include <utility>

namespace railhead::op::gangs {
namespace {

constexpr absl::Duration kBetweenReasons = absl::Minutes(1);
// Of the whole cluster.
constexpr kube::EventLimits kLimits = {200, absl::Milliseconds(500)};

kube::Event About(const Owner& owner, const StoredPod& pod) {
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
                       std::function<absl::Time()> time_of_day)
    : now_(std::move(now)),
      recorder_(api, "railhead-operator", std::move(host), std::move(time_of_day), kLimits) {}

absl::Status GangEvents::Waits(const Gang& gang, const std::string& why) {
  const absl::Time now = now_();
  if (const auto told = waiting_.find(gang.key);
      told != waiting_.end() && told->second.message == why) {
    told->second.at = now;
    return absl::OkStatus();
  }
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.warning = true;
  event.reason = "GangWaiting";
  event.message = why;
  absl::Status recorded = recorder_.Record(event);
  if (recorded.ok()) waiting_[gang.key] = {why, now};
  return recorded;
}

absl::Status GangEvents::HasNoRoom(const Gang& gang, const std::string& why) {
  if (!turns_.HasTaken(gang.key)) return IsIncomplete(gang, why);
  absl::Status recorded = Waits(gang, why);
  if (!recorded.ok()) turns_.InVain(gang.key);
  return recorded;
}

absl::Status GangEvents::IsIncomplete(const Gang& gang, const std::string& why) {
  const auto told = waiting_.find(gang.key);
  if (told != waiting_.end() && now_() - told->second.at < kBetweenReasons) {
    return absl::OkStatus();
  }
  return Waits(gang, why);
}

absl::Status GangEvents::IsPlaced(const Gang& gang, const std::string& where) {
  waiting_.erase(gang.key);
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.reason = "GangPlaced";
  event.message = where;
  return recorder_.Record(event);
}

absl::Status GangEvents::Notify(const Notice& notice) {
  const absl::Time now = now_();
  if (notice.kind == Notice::Kind::kTimedOut) waiting_.erase(notice.gang);
  if (notice.kind == Notice::Kind::kBlocked) {
    std::map<std::string, Told>& told = blocked_[notice.gang];
    if (const auto last = told.find(notice.pod->uid);
        last != told.end() &&
        (last->second.message == notice.text || now - last->second.at < kBetweenReasons)) {
      return absl::OkStatus();
    }
    told[notice.pod->uid] = {notice.text, now};
  }
  kube::Event event = About(notice.pod->member->terms->owner, *notice.pod);
  event.warning = true;
  event.reason = ReasonOf(notice.kind);
  event.message = notice.text;
  return recorder_.Record(event);
}

absl::Time GangEvents::EndRound(const std::set<std::string>& gangs,
                                const std::vector<std::string>& without_room) {
  const auto gone = [&](const auto& entry) { return !gangs.contains(entry.first); };
  std::erase_if(waiting_, gone);
  std::erase_if(blocked_, gone);
  return turns_.EndRound(without_room, now_());
}

}  // namespace railhead::op::gangs
