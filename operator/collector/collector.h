// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_COLLECTOR_H_
#define RAILHEAD_OPERATOR_COLLECTOR_COLLECTOR_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "kube/work_queue.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/collector/finding_events.h"
#include "operator/collector/job_index.h"
#include "operator/collector/page_client.h"
#include "operator/collector/page_poller.h"
#include "operator/collector/rail_watch.h"
#include "operator/collector/report_writer.h"
#include "operator/collector/verdict_counts.h"
#include "operator/profiles/cluster_profiles.h"
#include "operator/profiles/profile_feed.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

struct CollectorOptions {
  std::string host;  // this replica, for its Events
  PagePoller::Fetch fetch = AskPod;
  // Called by Run's thread.
  std::function<verdict::ClusterSettings()> settings = [] { return verdict::ClusterSettings(); };
  // Monotonic, and the time of day; called by several threads.
  std::function<absl::Time()> clock = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;
};

// Asks the pods that ask for RDMA for their runtimes' pages, judges a job anew when something of it
// has changed, and tells of what is wrong with it. The replica that leads does so; the others only
// follow which pods there are.
//
// Memory: of 20,000 pods with 8 rails that all report 28 MiB are kept (verdict/verdict_bench.cc),
// and less than 1 KiB each in keys, queues and records: 48 MiB at most. With the 42 MiB of a
// process that knows 5,000 nodes (docs/bench-scale.md) and the 7 MiB that the verdict keeps of
// these, that is 97 MiB of the 128Mi that the chart allows. Eight pages are read at once, of each
// of which 128 KiB at most are in memory.
//
// Rights needed, beside those of ClusterCaches and ReportWriter: create events.
class Collector {
 public:
  // Subscribes to `caches`, which are for verdicts. All must outlive the collector. `leads` is
  // exact at any moment.
  Collector(CollectorOptions options, kube::Api* api, ClusterCaches* caches,
            const ProfileFeed* feed, std::function<bool()> leads);

  // Works until `stop`.
  void Run(const std::stop_token& stop);

  // What is below is thread-safe, and brief.

  void OnLead();      // this replica has begun to
  void OnProfiles();  // they have changed
  // Of the jobs that there are; empty while another replica leads.
  VerdictCounts Counts() const;
  PageCounts Pages() const { return poller_.Counts(); }

 private:
  using Pod = std::shared_ptr<const verdict::PodFacts>;

  // It has changed; null where it was not there before, or is not now.
  void OnNode(const std::string& name, const verdict::NodeFacts* before,
              const verdict::NodeFacts* after);
  void OnPod(const std::string& key, const Pod& before, const Pod& after);
  Pod PodAt(const std::string& key) const;  // null if there is none
  // The jobs that the changed nodes are of interest to.
  void QueueJobsOfNodes();
  absl::Status JudgeJob(const std::string& job);
  // The job's pods; `again`: when it is to be judged again, whatever happens, or never.
  verdict::JobFacts Gather(const std::string& job, JobName& name, absl::Duration& again);
  void NoteWaiting(const std::string& key, const Pod& before, const Pod& after);
  const verdict::Cluster& Cluster();

  const CollectorOptions options_;
  const ClusterCaches* const caches_;
  const ProfileFeed* const feed_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // keys of jobs

  // Used by Run's thread alone.
  FindingEvents events_;
  std::string trouble_;  // as told
  verdict::Cluster cluster_;
  uint64_t cluster_nodes_ = 0;  // their generation
  std::shared_ptr<const ClusterProfiles> cluster_profiles_;

  mutable std::mutex mutex_;  // guards the next five
  JobIndex jobs_;
  std::map<std::string, VerdictCounts> counts_;      // by job
  std::set<std::string> changed_nodes_;              // by name
  std::map<std::string, absl::Time> waiting_since_;  // of pods that no scheduler finds a node for
  RailWatch rails_;

  ReportWriter reports_;
  PagePoller poller_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_COLLECTOR_H_
