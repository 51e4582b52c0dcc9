// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/job_index.h"

#include "absl/strings/str_join.h"

namespace railhead::op {

std::string JobName::Key() const { return absl::StrJoin({space, kind, name, uid}, "/"); }

JobName JobOf(const verdict::PodFacts& pod) {
  if (!pod.owner.has_value()) return {pod.space, "Pod", pod.name, pod.uid};
  return {pod.space, pod.owner->kind, pod.owner->name, pod.owner->uid};
}

void JobIndex::Add(const std::string& pod_key, const verdict::PodFacts& pod) {
  JobName name = JobOf(pod);
  Entry& entry = jobs_[name.Key()];
  entry.name = std::move(name);
  entry.pods.insert(pod_key);
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
