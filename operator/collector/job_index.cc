// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/job_index.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace railhead::op {
namespace {

// Kinds whose pods are the ranks of one program: Kubernetes' own, and those of the training
// operators that people use.
constexpr absl::string_view kTogether[] = {"Job",      "JobSet",     "StatefulSet",    "JAXJob",
                                           "MPIJob",   "PaddleJob",  "PyTorchJob",     "TFJob",
                                           "TrainJob", "XGBoostJob", "LeaderWorkerSet"};

}  // namespace

std::string JobName::Key() const { return absl::StrJoin({space, kind, name, uid}, "/"); }

JobName JobOf(const verdict::PodFacts& pod) {
  if (pod.owner.has_value()) {
    const verdict::Owner& owner = *pod.owner;
    if (std::find(std::begin(kTogether), std::end(kTogether), owner.kind) != std::end(kTogether)) {
      return {pod.space, owner.kind, owner.name, owner.uid, true};
    }
  }
  if (!pod.gang.empty()) return {pod.space, "PodGroup", pod.gang, "", true};
  if (!pod.owner.has_value()) return {pod.space, "Pod", pod.name, pod.uid};
  return {pod.space, pod.owner->kind, pod.owner->name, pod.uid};
}

void JobIndex::Add(const std::string& pod_key, const verdict::PodFacts& pod, absl::Time now) {
  JobName name = JobOf(pod);
  Entry& entry = jobs_[name.Key()];
  entry.name = std::move(name);
  if (entry.pods.insert(pod_key).second) entry.grown = now;
}

void JobIndex::Remove(const std::string& pod_key, const verdict::PodFacts& pod) {
  const auto at = jobs_.find(JobOf(pod).Key());
  if (at == jobs_.end()) return;
  at->second.pods.erase(pod_key);
  if (at->second.pods.empty()) jobs_.erase(at);
}

const JobIndex::Entry* JobIndex::Find(const std::string& job) const {
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : &at->second;
}

std::vector<std::string> JobIndex::Jobs() const {
  std::vector<std::string> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [key, entry] : jobs_) jobs.push_back(key);
  return jobs;
}

}  // namespace railhead::op
