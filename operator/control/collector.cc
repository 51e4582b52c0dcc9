// SPDX-License-Identifier: Apache-2.0
#include "operator/control/collector.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/collector/rail_report.h"
#include "operator/verdict/judge.h"

namespace railhead::op {
namespace {

using verdict::JobFacts;
using verdict::PodFacts;
using verdict::PodFinding;

// Number of scraper threads per pace.
constexpr int kAskers = 2;
constexpr absl::Duration kJobPatience =
    absl::Seconds(60);  // a wait ends earlier where there is work
// Changes that come together are judged together.
constexpr absl::Duration kSettle = absl::Milliseconds(500);
// Pods of a job are compared once it has not grown for this time.
constexpr absl::Duration kGrown = absl::Seconds(2);
// Recheck interval for lost rails: findings depend on their age, and no event triggers them.
constexpr absl::Duration kWatchRails = absl::Seconds(5);
constexpr absl::Duration kUntilSynced = absl::Seconds(2);
constexpr kube::BackoffOptions kBackoff = {absl::Milliseconds(500), absl::Seconds(30)};
// In the queue, where jobs have slashes: nodes have changed.
constexpr char kNodes[] = "nodes";

// Returns whether both are the same start of the same pod, which still runs.
bool IsSameRun(const PodFacts& before, const PodFacts& after) {
  return before.uid == after.uid && before.running_since == after.running_since &&
         !after.finished && after.running_since != absl::InfiniteFuture();
}

// Returns the time after which the pod's findings change because it is still waiting.
absl::Duration UntilItHasWaited(absl::Duration waiting) {
  for (const absl::Duration patience : {verdict::kUntilAgentsCome, verdict::kUntilNodesCome}) {
    if (waiting < patience) return patience - waiting;
  }
  return absl::InfiniteDuration();
}

bool HasLostRail(const verdict::RuntimeReport& report) {
  for (const verdict::RankReport& rank : report.ranks) {
    for (const verdict::UsedRail& rail : rank.used) {
      if (!rail.up) return true;
    }
  }
  return false;
}

}  // namespace

Collector::Collector(CollectorOptions options, kube::Api* api, ClusterCaches* caches,
                     const ProfileFeed* feed, std::function<bool()> leads)
    : options_(std::move(options)),
      caches_(caches),
      feed_(feed),
      leads_(std::move(leads)),
      queue_(kBackoff, kube::SystemRandom(), kube::MonotonicNow, kube::NamespaceOfItem),
      events_(api, options_.host, options_.now, options_.clock),
      reports_(api, options_.namespaces, leads_, options_.clock, [this] { return ReportsInUse(); }),
      poller_([this](const std::string& key) { return PodAt(key); }, options_.fetch, leads_,
              options_.clock,
              [this](const std::string& key) {
                const Pod pod = PodAt(key);
                if (pod != nullptr) queue_.AddAfter(JobOf(*pod).Key(), kSettle);
              }) {
  caches->nodes().Subscribe([this](const std::string& name, const auto& before, const auto& after) {
    const verdict::NodeFacts* was = before == nullptr ? nullptr : &before->facts;
    const verdict::NodeFacts* is = after == nullptr ? nullptr : &after->facts;
    if (was == nullptr || is == nullptr || *was != *is) OnNode(name, was, is);
  });
  caches->pods().Subscribe([this](const std::string& key, const auto& before, const auto& after) {
    const Pod was = before == nullptr ? nullptr : before->facts;
    const Pod is = after == nullptr ? nullptr : after->facts;
    if (was != is) OnPod(key, was, is);
  });
}

Collector::Pod Collector::PodAt(const std::string& key) const {
  const kube::Cache<CachedPod>::Value pod = caches_->pods().cache().Get(key);
  return pod == nullptr ? nullptr : pod->facts;
}

void Collector::OnProfiles() {
  std::vector<std::string> jobs;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs = jobs_.Jobs();
  }
  for (const std::string& job : jobs) queue_.AddAfter(job, kSettle);
}

void Collector::OnLead() {
  // State from an earlier term as leader is outdated.
  poller_.ForgetAll();
  reports_.OnLead();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.clear();
  }
  OnProfiles();
  std::vector<std::string> pods;
  caches_->pods().cache().ForEach([&pods](const std::string& key, const auto& pod) {
    if (pod->facts != nullptr) pods.push_back(key);
  });
  for (const std::string& key : pods) poller_.Follow(key);
}

void Collector::OnNode(const std::string& name, const verdict::NodeFacts* before,
                       const verdict::NodeFacts* after) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    rails_.Note(name, before, after, options_.clock());
    changed_nodes_.insert(name);
  }
  queue_.AddAfter(kNodes, kSettle);
}

void Collector::OnPod(const std::string& key, const Pod& before, const Pod& after) {
  const bool stays = before != nullptr && after != nullptr && before->uid == after->uid &&
                     JobOf(*before).Key() == JobOf(*after).Key();
  if (!stays) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (before != nullptr) jobs_.Remove(key, *before);
    if (after != nullptr) jobs_.Add(key, *after, options_.clock());
  }
  NoteWaiting(key, before, after);
  if (before == nullptr || after == nullptr) {
    poller_.Forget(key);
  } else if (!IsSameRun(*before, *after) || !PagePoller::CanBeAsked(*before)) {
    poller_.Forget(key);
    if (before->uid == after->uid) poller_.Begin(key);
  }
  if (before != nullptr) queue_.AddAfter(JobOf(*before).Key(), kSettle);
  if (after == nullptr) return;
  queue_.AddAfter(JobOf(*after).Key(), kSettle);
  poller_.Follow(key);
}

void Collector::NoteWaiting(const std::string& key, const Pod& before, const Pod& after) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (before != nullptr && after != nullptr && before->uid != after->uid) waiting_since_.erase(key);
  if (after == nullptr || after->unschedulable.empty()) {
    waiting_since_.erase(key);
  } else {
    waiting_since_.try_emplace(key, options_.clock());
  }
}

void Collector::Run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    poller_.ShutDown();
    reports_.ShutDown();
    queue_.ShutDown();
  });
  std::vector<std::jthread> threads;
  for (const PagePoller::Pace pace : {PagePoller::Pace::kFirst, PagePoller::Pace::kUsual,
                                      PagePoller::Pace::kBacklog, PagePoller::Pace::kSlow}) {
    for (int i = 0; i < kAskers; ++i) threads.emplace_back([this, pace] { poller_.Run(pace); });
  }
  threads.emplace_back([this] { reports_.Run(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> item = queue_.Take(kJobPatience);
    if (!item) continue;
    absl::Status done;
    if (*item == kNodes) {
      QueueJobsOfNodes();
    } else {
      done = JudgeJob(*item);
    }
    const std::string trouble(done.message());
    if (trouble != trouble_ && !done.ok()) spdlog::warn("diagnosis: {}", trouble);
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
  std::vector<std::string> pods;
  caches_->pods().cache().ForEach([&](const std::string& key, const auto& cached) {
    const Pod& pod = cached->facts;
    if (pod == nullptr) return;
    if (changed.contains(pod->node)) pods.push_back(key);
    // One that waits for a node may be waiting for any.
    if (changed.contains(pod->node) || !pod->unschedulable.empty()) jobs.insert(JobOf(*pod).Key());
  });
  for (const std::string& job : jobs) queue_.Add(job);
  // Runtimes of these nodes' pods see the same changes.
  for (const std::string& key : pods) poller_.Follow(key);
}

std::optional<std::set<std::string>> Collector::ReportsInUse() const {
  if (!caches_->pods().Synced()) return std::nullopt;
  std::set<std::string> keys;
  caches_->pods().cache().ForEach([&keys](const std::string&, const auto& cached) {
    if (cached->facts != nullptr) keys.insert(ReportKeyOf(*cached->facts));
  });
  return keys;
}

absl::Status Collector::JudgeJob(const std::string& job) {
  absl::Duration again = absl::InfiniteDuration();
  JobName name;
  const JobFacts facts = Gather(job, name, again);
  if (facts.pods.empty()) {
    events_.Forget(job);
    reports_.Forget(job);
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.erase(job);
    return absl::OkStatus();
  }
  if (!leads_()) return absl::OkStatus();  // who begins to lead judges all jobs
  // Wait until all pods and profiles are cached.
  if (!caches_->pods().Synced() || feed_->Get() == nullptr) {
    queue_.AddAfter(job, kUntilSynced);
    return absl::OkStatus();
  }
  const std::vector<PodFinding> findings = verdict::Judge(facts, Cluster());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.erase(job);
    if (!findings.empty()) counts_[job] = CountPods(name.space, name.name, findings);
  }
  if (!leads_()) return absl::OkStatus();
  if (again != absl::InfiniteDuration()) queue_.AddAfter(job, again);
  reports_.Put(job, ReportOf(name, facts, findings));
  return events_.Tell(job, facts, findings);
}

JobFacts Collector::Gather(const std::string& job, JobName& name, absl::Duration& again) {
  std::set<std::string> keys;
  std::map<std::string, absl::Time> waiting_since;
  JobFacts facts;
  const absl::Time now = options_.clock();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const JobIndex::Entry* entry = jobs_.Find(job);
    if (entry == nullptr) return facts;
    name = entry->name;
    keys = entry->pods;
    const absl::Duration age = now - entry->grown;
    facts.comparable = name.together && age >= kGrown;
    facts.one_program = name.one_program;
    if (name.together && age < kGrown) again = kGrown - age;
    facts.just_lost = rails_.JustLost(now);
    for (const std::string& key : keys) {
      const auto since = waiting_since_.find(key);
      if (since != waiting_since_.end()) waiting_since.insert(*since);
    }
  }
  for (const std::string& key : keys) {
    const Pod pod = PodAt(key);
    if (pod == nullptr || JobOf(*pod).Key() != job) continue;  // it has just changed
    const PageAnswer answer = poller_.Get(key);
    verdict::JudgedPod& judged = facts.pods.emplace_back();
    judged.pod = pod;
    judged.report = answer.report;
    judged.learned = answer.learned;
    judged.heard = answer.heard;
    judged.from_start = answer.from_start;
    judged.silence = answer.silence;
    if (const auto since = waiting_since.find(key); since != waiting_since.end()) {
      judged.waiting = now - since->second;
      again = std::min(again, UntilItHasWaited(judged.waiting));
    }
    if (!facts.just_lost.empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      again = std::min(again, rails_.UntilLost(pod->node, now));
    }
    judged.unchanged = answer.unchanged;
    judged.age = answer.age;
    if (answer.report != nullptr && HasLostRail(*answer.report)) {
      again = std::min(again, kWatchRails);
    }
  }
  return facts;
}

const verdict::Cluster& Collector::Cluster() {
  const std::shared_ptr<const ClusterProfiles> profiles = feed_->Get();
  cluster_.Set(options_.settings());
  const kube::Cache<StoredNode>& known = caches_->nodes().cache();
  if (cluster_profiles_ == profiles && cluster_nodes_ == known.generation()) {
    return cluster_;
  }
  std::map<std::string, verdict::ProfileFacts> by_name;
  for (const RailProfile& profile : profiles->set->profiles) {
    by_name[profile.name] = {profile.generation, profile.fabric, profile.require_rdma};
  }
  verdict::Cluster::Nodes nodes;
  cluster_nodes_ =
      known.ForEach([&nodes](const std::string& name, const kube::Cache<StoredNode>::Value& node) {
        nodes[name] = std::shared_ptr<const verdict::NodeFacts>(node, &node->facts);
      });
  cluster_ = verdict::Cluster(std::move(nodes), std::move(by_name), cluster_.settings());
  cluster_profiles_ = profiles;
  return cluster_;
}

VerdictCounts Collector::Counts() const {
  VerdictCounts counts;
  if (!leads_()) return counts;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [job, of_job] : counts_) {
    if (jobs_.Find(job) == nullptr) continue;  // it is gone, and will be judged so
    for (const auto& [series, pods] : of_job) counts[series] += pods;
  }
  return counts;
}

}  // namespace railhead::op
