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

GangEvents::GangEvents(kube::Api* api, std::string host, std::function<absl::Time()> clock)
    : clock_(clock),
      recorder_(api, "railhead-operator", std::move(host), std::move(clock), kLimits) {}

bool GangEvents::WouldTell(const Gang& gang) const {
  const auto told = waiting_.find(gang.key);
  return told == waiting_.end() || clock_() - told->second.at >= kBetweenReasons;
}

absl::Status GangEvents::Waits(const Gang& gang, const std::string& why) {
  const absl::Time now = clock_();
  const auto told = waiting_.find(gang.key);
  if (!WouldTell(gang)) return absl::OkStatus();
  if (told != waiting_.end() && told->second.message == why) {
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

absl::Status GangEvents::IsPlaced(const Gang& gang, const std::string& where) {
  waiting_.erase(gang.key);
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.reason = "GangPlaced";
  event.message = where;
  return recorder_.Record(event);
}

absl::Status GangEvents::Notify(const Notice& notice) {
  const absl::Time now = clock_();
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
  kube::Event event = About(notice.pod->member->owner, *notice.pod);
  event.warning = true;
  event.reason = ReasonOf(notice.kind);
  event.message = notice.text;
  return recorder_.Record(event);
}

void GangEvents::KeepOnly(const std::set<std::string>& gang_keys) {
  const auto gone = [&](const auto& entry) { return !gang_keys.contains(entry.first); };
  std::erase_if(waiting_, gone);
  std::erase_if(blocked_, gone);
}

}  // namespace railhead::op::gangs
