// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/finding_events.h"

#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

using verdict::Finding;
using verdict::PodFacts;

constexpr size_t kMostOfOneReason = 16;
// Of the whole cluster: what is wrong with a few jobs is told at once.
constexpr kube::EventLimits kLimits = {200, absl::Milliseconds(200)};

// Whether the API server will say the same the next time.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status) ||
         absl::IsNotFound(status);
}

kube::Event EventOf(const Finding& finding, const PodFacts& pod) {
  const verdict::ReasonRow& row = verdict::RowOf(finding.reason);
  kube::Event event;
  event.api = "v1";
  event.kind = "Pod";
  event.space = pod.space;
  event.name = pod.name;
  event.uid = pod.uid;
  event.warning = row.severity == verdict::Severity::kWarning;
  event.reason = std::string(row.name);
  event.message = finding.message;
  event.part = finding.part;
  return event;
}

}  // namespace

FindingEvents::FindingEvents(kube::Api* api, std::string host, std::function<absl::Time()> clock)
    : recorder_(api, "railhead-operator", std::move(host), std::move(clock), kLimits) {}

absl::Status FindingEvents::Tell(const std::string& job, const verdict::JobFacts& facts,
                                 const std::vector<Finding>& findings) {
  std::map<std::string, const PodFacts*> pods;
  std::set<std::string> uids;
  for (const verdict::JudgedPod& judged : facts.pods) {
    pods[judged.pod->name] = judged.pod.get();
    uids.insert(judged.pod->uid);
  }
  absl::Status trouble;
  Told& told = told_[job];
  for (auto& [reason, keys] : told) {
    std::erase_if(keys, [&uids](const auto& key) { return !uids.contains(key.first); });
  }
  for (const Finding& finding : findings) {
    const PodFacts& pod = *pods.at(finding.pod);
    const std::pair<std::string, std::string> key = {pod.uid, finding.part};
    auto& keys = told[finding.reason];
    if (keys.size() >= kMostOfOneReason || keys.contains(key)) continue;
    const absl::Status recorded = recorder_.Record(EventOf(finding, pod));
    if (!recorded.ok()) {
      trouble.Update({recorded.code(), absl::StrCat("no Event for pod ", pod.space, "/", pod.name,
                                                    ": ", recorded.message())});
      if (!IsRefusal(recorded)) break;
    }
    // One that was refused would be so again, and must not be in the way of the others.
    keys.insert(key);
  }
  return trouble;
}

void FindingEvents::Forget(const std::string& job) { told_.erase(job); }

}  // namespace railhead::op
