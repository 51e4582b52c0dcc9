// SPDX-License-Identifier: Apache-2.0
//
// Controller for diagnosis: scrapes the runtimes of pods that request RDMA, diagnoses a job after
// each change, and reports its faults. Active on the leader; other replicas only track which pods
// exist.
#ifndef RAILHEAD_OPERATOR_CONTROL_COLLECTOR_H_
#define RAILHEAD_OPERATOR_CONTROL_COLLECTOR_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "kube/queue/work_queue.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/cluster/cluster_profiles.h"
#include "operator/collector/finding_events.h"
#include "operator/collector/job_index.h"
#include "operator/collector/page_client.h"
#include "operator/collector/page_poller.h"
#include "operator/collector/rail_watch.h"
#include "operator/collector/report_writer.h"
#include "operator/collector/verdict_counts.h"
#include "operator/control/profile_feed.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

struct CollectorOptions {
  std::string host;                       // this replica, for its Events
  std::set<std::string> namespaces = {};  // as in InjectionConfig
  PagePoller::Fetch fetch = AskPod;
  // Called on Run's thread.
  std::function<verdict::ClusterSettings()> settings = [] { return verdict::ClusterSettings(); };
  // Monotonic clock and wall clock; called concurrently.
  std::function<absl::Time()> clock = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;
};

// Memory for 20,000 pods with 8 rails that all report: 28 MiB of reports
// (verdict/verdict_bench.cc), and less than 1 KiB each in keys, queues and records: at most 48 MiB.
// Eight scrapes run at a time, each with at most 128 KiB in memory. docs/bench-scale.md has the
// whole process at that size.
//
// Rights needed, beside those of ClusterCaches and ReportWriter: create events.
class Collector {
 public:
  // Subscribes to `caches`, which must watch for verdicts. All must outlive the collector. `leads`
  // must be exact at any time.
  Collector(CollectorOptions options, kube::Api* api, ClusterCaches* caches,
            const ProfileFeed* feed, std::function<bool()> leads);

  // Runs until `stop`.
  void Run(const std::stop_token& stop);

  // Thread-safe from here on; return quickly.

  void OnLead();      // call when this replica becomes the leader
  void OnProfiles();  // call when profiles change
  // Counts findings of existing jobs; empty while another replica leads.
  VerdictCounts Counts() const;
  PageCounts Pages() const { return poller_.Counts(); }

 private:
  using Pod = std::shared_ptr<const verdict::PodFacts>;

  // Handles a change; null: absent before, or now.
  void OnNode(const std::string& name, const verdict::NodeFacts* before,
              const verdict::NodeFacts* after);
  void OnPod(const std::string& key, const Pod& before, const Pod& after);
  Pod PodAt(const std::string& key) const;  // null if absent
  // Queues the jobs that the changed nodes affect.
  void QueueJobsOfNodes();
  std::optional<std::set<std::string>> ReportsInUse() const;
  absl::Status JudgeJob(const std::string& job);
  // Collects the job's pods. `again`: delay until the next diagnosis without a change; may be
  // infinite.
  verdict::JobFacts Gather(const std::string& job, JobName& name, absl::Duration& again);
  void NoteWaiting(const std::string& key, const Pod& before, const Pod& after);
  const verdict::Cluster& Cluster();

  const CollectorOptions options_;
  const ClusterCaches* const caches_;
  const ProfileFeed* const feed_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // keys of jobs

  // Used by Run's thread only.
  FindingEvents events_;
  std::string trouble_;  // as logged
  verdict::Cluster cluster_;
  uint64_t cluster_nodes_ = 0;  // generation of its nodes
  std::shared_ptr<const ClusterProfiles> cluster_profiles_;

  mutable std::mutex mutex_;  // guards all down to rails_
  JobIndex jobs_;
  std::map<std::string, VerdictCounts> counts_;      // by job
  std::set<std::string> changed_nodes_;              // by name
  std::map<std::string, absl::Time> waiting_since_;  // pods that no scheduler finds a node for
  RailWatch rails_;

  ReportWriter reports_;
  PagePoller poller_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_COLLECTOR_H_
