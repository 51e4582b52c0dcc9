// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_events.h"

#include <utility>

#include "absl/strings/str_cat.h"

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

absl::Status GangEvents::TimedOut(const Gang& gang, const std::string& what) {
  waiting_.erase(gang.key);
  kube::Event event = About(gang.owner, *gang.gated.front());
  event.warning = true;
  event.reason = "GangTimedOut";
  event.message = what;
  return recorder_.Record(event);
}

absl::Status GangEvents::Replanned(const StoredPod& pod, const std::string& node, bool deleted) {
  std::set<std::string>& told = no_owner_[GangKeyOf(pod)];
  if (!deleted && told.contains(pod.uid)) return absl::OkStatus();
  kube::Event event = About(pod.member->owner, pod);
  event.warning = true;
  event.reason = "GangReplanned";
  event.message = absl::StrCat(
      "pod ", pod.name, " was sent to node ", node.empty() ? "(gone)" : node,
      ", where the scheduler has no room for it: ",
      deleted ? "it is deleted, so that it comes back and is placed anew; does another scheduler "
                "use these nodes?"
              : "nobody would make it again: delete it and make it again yourself");
  absl::Status recorded = recorder_.Record(event);
  if (recorded.ok() && !deleted) told.insert(pod.uid);
  return recorded;
}

void GangEvents::KeepOnly(const std::set<std::string>& gang_keys) {
  const auto gone = [&](const auto& entry) { return !gang_keys.contains(entry.first); };
  std::erase_if(waiting_, gone);
  std::erase_if(no_owner_, gone);
}

}  // namespace railhead::op::gangs
