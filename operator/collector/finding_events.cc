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
  Told& told = told_[job];
  for (auto& [reason, keys] : told) {
    std::erase_if(keys, [&uids](const auto& key) { return !uids.contains(key.first); });
  }
  for (const Finding& finding : findings) {
    const PodFacts& pod = *pods.at(finding.pod);
    const std::pair<std::string, std::string> key = {pod.uid, finding.part};
    auto& keys = told[finding.reason];
    if (keys.size() >= kMostOfOneReason || keys.contains(key)) continue;
    if (absl::Status recorded = recorder_.Record(EventOf(finding, pod)); !recorded.ok()) {
      return {recorded.code(), absl::StrCat("no Event for pod ", pod.space, "/", pod.name, ": ",
                                            recorded.message())};
    }
    keys.insert(key);
  }
  return absl::OkStatus();
}

void FindingEvents::Forget(const std::string& job) { told_.erase(job); }

}  // namespace railhead::op
