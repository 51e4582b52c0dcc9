// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/job_index.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "jobs/job.h"

namespace railhead::op {
namespace {

bool AreRanks(jobs::Kind::Pods pods, const verdict::PodFacts& pod) {
  using Pods = jobs::Kind::Pods;
  return pods == Pods::kOneProgram || (pods == Pods::kOneProgramIfIndexed && pod.rank.has_value());
}

}  // namespace

std::string JobName::Key() const { return absl::StrJoin({space, kind, name, uid}, "/"); }

JobName JobOf(const verdict::PodFacts& pod) {
  const jobs::Owner owner = pod.terms->owner.value_or(jobs::Owner());
  const jobs::Kind::Pods pods = jobs::KindOf(owner).pods;
  if (AreRanks(pods, pod)) {
    if (const std::string& name = pod.terms->replicated_job; !name.empty()) {
      return {pod.space, owner.kind, name, pod.terms->job_set_uid, "", true, true};
    }
    return {pod.space, owner.kind, owner.name, owner.uid, owner.api, true, true};
  }
  if (!pod.terms->gang.empty()) return {pod.space, kGangKind, pod.terms->gang, "", "", true, true};
  if (owner.kind.empty()) return {pod.space, "Pod", pod.name, pod.uid, "v1"};
  if (pods == jobs::Kind::Pods::kPerhapsOneProgram) {
    return {pod.space, owner.kind, owner.name, owner.uid, owner.api, true, false};
  }
  return {pod.space, owner.kind, owner.name, pod.uid, owner.api};
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
