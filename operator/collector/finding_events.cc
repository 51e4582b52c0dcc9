// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/finding_events.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

using verdict::PodFacts;
using verdict::PodFinding;

constexpr char kComponent[] = "railhead-operator";
constexpr std::ptrdiff_t kMostWarnings =
    16;  // of one reason in one job, for as long as Events live
constexpr std::ptrdiff_t kMostInfos = 1;
constexpr absl::Duration kEventsLive = absl::Hours(1);
// A finding that returns within this time is the same finding.
constexpr absl::Duration kGone = absl::Minutes(10);
constexpr absl::Duration kAfterRefusal = absl::Minutes(5);
// Findings of a few jobs are sent at once.
constexpr EventBudget::Options kWarnings = {
    .all = {200, absl::Milliseconds(200)}, .of_one = {50, absl::Seconds(1)}, .reserve = 50};
constexpr EventBudget::Options kInfos = {
    .all = {50, absl::Seconds(2)}, .of_one = {12, absl::Seconds(10)}, .reserve = 12};

// Returns whether the API server rejects all Events of this namespace.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status);
}

// Returns the Event for a finding. Its object is the pod; for admission's notes, the pod's
// controller, once for all of its pods.
kube::Event EventOf(const PodFinding& finding, const PodFacts& pod) {
  kube::Event event;
  event.space = pod.space;
  if (finding.reason == verdict::Reason::kNotDone && pod.terms->owner) {
    event.api = pod.terms->owner->api;
    event.kind = pod.terms->owner->kind;
    event.name = pod.terms->owner->name;
    event.uid = pod.terms->owner->uid;
  } else {
    event.api = "v1";
    event.kind = "Pod";
    event.name = pod.name;
    event.uid = pod.uid;
  }
  event.warning = finding.severity == Severity::kFail;
  event.reason = finding.check;
  event.message = FindingLine(finding);
  event.part = finding.part;
  return event;
}

}  // namespace

FindingEvents::FindingEvents(kube::Api* api, const std::string& host,
                             const std::function<absl::Time()>& now,
                             const std::function<absl::Time()>& clock)
    : clock_(clock),
      warnings_(api, kComponent, host, now, kWarnings.all, clock),
      infos_(api, kComponent, host, now, kInfos.all, clock),
      warning_budget_(kWarnings),
      info_budget_(kInfos) {}

bool FindingEvents::HasRoom(const std::map<Key, Told>& told, Severity severity, absl::Time now) {
  const auto lately = std::count_if(told.begin(), told.end(), [now](const auto& entry) {
    return now - entry.second.at < kEventsLive;
  });
  return lately < (severity == Severity::kFail ? kMostWarnings : kMostInfos);
}

absl::Status FindingEvents::Tell(const std::string& job, const verdict::JobFacts& facts,
                                 const std::vector<PodFinding>& findings) {
  const absl::Time now = clock_();
  std::map<std::string, const PodFacts*> pods;
  for (const verdict::JudgedPod& judged : facts.pods) pods[judged.pod->name] = judged.pod.get();
  Job& of_job = jobs_[job];
  for (const PodFinding& finding : findings) {
    const auto kind = of_job.told.find({finding.reason, finding.severity});
    if (kind == of_job.told.end()) continue;
    const auto told =
        kind->second.find({EventOf(finding, *pods.at(finding.pod)).uid, finding.part});
    if (told != kind->second.end()) told->second.found = now;
  }
  for (auto& [kind, told] : of_job.told) {
    std::erase_if(told, [now](const auto& entry) {
      return now - entry.second.found > kGone && now - entry.second.at >= kEventsLive;
    });
  }
  if (now < of_job.refused_until) return absl::OkStatus();
  absl::Status trouble;
  bool infos_have_room = true;
  for (const PodFinding& finding : findings) {
    const PodFacts& pod = *pods.at(finding.pod);
    auto& told = of_job.told[{finding.reason, finding.severity}];
    const kube::Event event = EventOf(finding, pod);
    const Key key = {event.uid, finding.part};
    if (told.contains(key) || !HasRoom(told, finding.severity, now)) continue;
    if (!event.warning && !infos_have_room) continue;
    EventBudget& budget = event.warning ? warning_budget_ : info_budget_;
    const absl::Status recorded =
        budget.Allows(pod.space, now)
            ? (event.warning ? warnings_ : infos_).Record(event)
            : absl::ResourceExhaustedError("its namespace has used its quota of Events for now");
    if (recorded.ok()) budget.Spend(pod.space, now);
    if (!event.warning && absl::IsResourceExhausted(recorded)) {
      infos_have_room = false;  // not important enough for a retry
      continue;
    }
    if (!recorded.ok()) {
      trouble = {recorded.code(), absl::StrCat("no Event for pod ", pod.space, "/", pod.name, ": ",
                                               recorded.message())};
      if (IsRefusal(recorded)) {
        of_job.refused_until = now + kAfterRefusal;
        break;
      }
      // An Event that is invalid in itself must not block the others.
      if (!absl::IsInvalidArgument(recorded)) break;
    }
    told[key] = {now, now};
  }
  return trouble;
}

void FindingEvents::Forget(const std::string& job) { jobs_.erase(job); }

}  // namespace railhead::op
