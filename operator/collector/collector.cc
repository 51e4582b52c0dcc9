// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/collector.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::op {
namespace {

using kube::Json;
using verdict::Finding;
using verdict::JobFacts;
using verdict::PodFacts;
using verdict::Reason;

// Pages that are in memory at once, each of kMaxPageBytes at most.
constexpr int kAskers = 6;
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
// Changes that come together are judged together: of half a job that is being created nothing is to
// be told that will not be so a moment later.
constexpr absl::Duration kSettle = absl::Milliseconds(500);
constexpr absl::Duration kUntilSynced = absl::Seconds(2);
constexpr kube::BackoffOptions kBackoff = {absl::Milliseconds(500), absl::Seconds(30)};
// In the queue, where jobs have slashes: nodes have changed.
constexpr char kNodes[] = "nodes";

kube::ReflectorOptions WatchingPods() {
  kube::ReflectorOptions options;
  options.collection = {"v1", "pods", "", ""};
  return options;
}

bool Runs(const PodFacts& pod) {
  return !pod.finished && pod.running_since != absl::InfiniteFuture();
}

}  // namespace

Collector::Collector(CollectorOptions options, kube::Api* api, const ClusterCaches* caches,
                     const ProfileFeed* feed, std::function<bool()> leads)
    : options_(std::move(options)),
      caches_(caches),
      feed_(feed),
      leads_(std::move(leads)),
      queue_(kBackoff),
      events_(api, options_.host, options_.now),
      poller_([this](const std::string& key) { return pods_.cache().Get(key); }, options_.fetch,
              leads_, options_.now,
              [this](const std::string& key) {
                const Pod pod = pods_.cache().Get(key);
                if (pod != nullptr) queue_.AddAfter(JobOf(*pod).Key(), kSettle);
              }),
      pods_(WatchingPods(), api,
            [this](const Json& pod) -> std::optional<PodFacts> {
              if (options_.excluded_namespaces.contains(
                      kube::StringAt(pod, {"metadata", "namespace"}))) {
                return std::nullopt;
              }
              return verdict::PodFactsOf(pod);
            },
            {[this](const std::string& key, const Pod& before, const Pod& after) {
               OnPod(key, before, after);
             },
             [] {}, [this](const absl::Status& end) { TellEnd(end); }}) {}

void Collector::Start() { pods_.Start(); }

void Collector::RequestStop() { pods_.RequestStop(); }

void Collector::OnProfiles() {
  std::vector<std::string> jobs;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs = jobs_.Jobs();
  }
  for (const std::string& job : jobs) queue_.AddAfter(job, kSettle);
}

void Collector::OnLead() {
  OnProfiles();
  std::vector<std::string> pods;
  pods_.cache().ForEach([&pods](const std::string& key, const Pod&) { pods.push_back(key); });
  for (const std::string& key : pods) poller_.Follow(key);
}

void Collector::OnNode(const std::string& name) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_nodes_.insert(name);
  }
  queue_.AddAfter(kNodes, kSettle);
}

void Collector::OnPod(const std::string& key, const Pod& before, const Pod& after) {
  const bool another = before == nullptr || after == nullptr || before->uid != after->uid;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (before != nullptr) jobs_.Remove(key, *before);
    if (after != nullptr) jobs_.Add(key, *after);
  }
  if (another || !Runs(*after)) poller_.Forget(key);
  if (before != nullptr) queue_.AddAfter(JobOf(*before).Key(), kSettle);
  if (after == nullptr) return;
  queue_.AddAfter(JobOf(*after).Key(), kSettle);
  poller_.Follow(key);
}

void Collector::TellEnd(const absl::Status& end) {
  if (absl::IsCancelled(end)) return;
  const std::string now(end.message());
  if (now != watch_trouble_ && !end.ok()) spdlog::warn("watching pods: {}", now);
  watch_trouble_ = now;
}

void Collector::Run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    poller_.ShutDown();
    queue_.ShutDown();
  });
  std::vector<std::jthread> askers;
  askers.reserve(kAskers);
  for (int i = 0; i < kAskers; ++i) askers.emplace_back([this] { poller_.Run(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> item = queue_.Take(kPatience);
    if (!item) continue;
    absl::Status done;
    if (*item == kNodes) {
      QueueJobsOfNodes();
    } else {
      done = JudgeJob(*item);
    }
    const std::string trouble(done.message());
    if (trouble != trouble_ && !done.ok()) spdlog::warn("verdict: {}", trouble);
    trouble_ = trouble;
    if (done.ok()) {
      queue_.Finish(*item);
    } else {
      queue_.Retry(*item);
    }
  }
}

void Collector::QueueJobsOfNodes() {
  std::set<std::string> changed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed.swap(changed_nodes_);
  }
  std::set<std::string> jobs;
  pods_.cache().ForEach([&](const std::string&, const Pod& pod) {
    // One that waits for a node may be waiting for any.
    if (changed.contains(pod->node) || !pod->unschedulable.empty()) jobs.insert(JobOf(*pod).Key());
  });
  for (const std::string& job : jobs) queue_.Add(job);
}

absl::Status Collector::JudgeJob(const std::string& job) {
  const JobFacts facts = Gather(job);
  if (facts.pods.empty()) {
    events_.Forget(job);
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.erase(job);
    return absl::OkStatus();
  }
  if (!leads_()) return absl::OkStatus();  // who begins to lead judges all jobs
  // What is half known would be half wrong.
  if (!pods_.Synced() || feed_->Get() == nullptr) {
    queue_.AddAfter(job, kUntilSynced);
    return absl::OkStatus();
  }
  const std::vector<Finding> findings = verdict::Judge(facts, Cluster(), options_.now());
  std::map<Reason, std::set<std::string>> pods;
  for (const Finding& finding : findings) pods[finding.reason].insert(finding.pod);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.erase(job);
    for (const auto& [reason, names] : pods) {
      counts_[job][reason] = names.size();
    }
  }
  if (!leads_()) return absl::OkStatus();
  return events_.Tell(job, facts, findings);
}

JobFacts Collector::Gather(const std::string& job) const {
  std::set<std::string> keys;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const JobIndex::Entry* entry = jobs_.Find(job);
    if (entry != nullptr) keys = entry->pods;
  }
  JobFacts facts;
  for (const std::string& key : keys) {
    const Pod pod = pods_.cache().Get(key);
    if (pod == nullptr || JobOf(*pod).Key() != job) continue;  // it has just changed
    const PageAnswer answer = poller_.Get(key);
    verdict::JudgedPod& judged = facts.pods.emplace_back();
    judged.pod = *pod;
    if (answer.report != nullptr) judged.report = *answer.report;
    judged.silent = answer.asked && !answer.answered;
  }
  return facts;
}

const verdict::ClusterFacts& Collector::Cluster() {
  const std::shared_ptr<const ClusterProfiles> profiles = feed_->Get();
  if (cluster_profiles_ == profiles && cluster_nodes_ == caches_->nodes().generation()) {
    return cluster_;
  }
  cluster_ = {};
  for (const RailProfile& profile : profiles->set->profiles) {
    cluster_.profiles[profile.name] = {profile.generation, profile.fabric, profile.require_rdma};
  }
  cluster_nodes_ = caches_->nodes().ForEach(
      [this](const std::string& name, const kube::Cache<StoredNode>::Value& node) {
        cluster_.nodes[name] = node->facts;
      });
  cluster_profiles_ = profiles;
  return cluster_;
}

VerdictCounts Collector::Counts() const {
  VerdictCounts counts;
  if (!leads_()) return counts;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [job, reasons] : counts_) {
    const JobIndex::Entry* entry = jobs_.Find(job);
    if (entry == nullptr) continue;  // it is gone, and will be judged so
    for (const auto& [reason, pods] : reasons) {
      const verdict::ReasonRow& row = verdict::RowOf(reason);
      const bool warning = row.severity == verdict::Severity::kWarning;
      counts[{entry->name.space, entry->name.name, std::string(row.name),
              warning ? "warning" : "info"}] += pods;
    }
  }
  return counts;
}

}  // namespace railhead::op
