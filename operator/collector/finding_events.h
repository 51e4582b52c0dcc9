// SPDX-License-Identifier: Apache-2.0
//
// Events of the collector: reports each finding once, as an Event on the pod, within budgets that
// keep other Events from being evicted.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_
#define RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/collector/event_budget.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op {

// Steps that admission skipped are reported on the pod's controller, which alone received the
// warning. A finding is reported again if it was gone and its Event has expired.
//
// Limits: per reason and job, 16 warnings per hour, which is the lifetime of Events, because
// hundreds of equal ones would evict other Events. Infos are reported for one pod per job, from a
// separate budget. Each namespace has its own budget; the last part of the cluster's is reserved
// for namespaces with few Events. The name of an Event derives from pod, reason and part. Another
// replica that makes the same finding therefore does not report it twice, even if numbers in the
// message differ.
//
// Rights needed: create events. Not thread-safe.
class FindingEvents {
 public:
  // `host`: this replica. `now`: wall clock. `clock`: monotonic. `api` must outlive this.
  FindingEvents(kube::Api* api, const std::string& host, const std::function<absl::Time()>& now,
                const std::function<absl::Time()>& clock);

  // Reports new findings of a job in their order. The first error ends it; call again for the rest.
  // If the server rejects Events of this job, pauses reporting for it and returns the error once.
  absl::Status Tell(const std::string& job, const verdict::JobFacts& facts,
                    const std::vector<verdict::PodFinding>& findings);
  // Call when the job is gone.
  void Forget(const std::string& job);

 private:
  using Key = std::pair<std::string, std::string>;  // a pod's uid, and the part
  struct Told {
    absl::Time at;
    absl::Time found;  // last time
  };
  using Kind = std::pair<verdict::Reason, Severity>;
  struct Job {
    std::map<Kind, std::map<Key, Told>> told;
    absl::Time refused_until = absl::InfinitePast();
  };

  // Returns whether one more of this kind may be reported.
  static bool HasRoom(const std::map<Key, Told>& told, Severity severity, absl::Time now);

  const std::function<absl::Time()> clock_;
  kube::EventRecorder warnings_;
  kube::EventRecorder infos_;
  EventBudget warning_budget_;
  EventBudget info_budget_;
  std::map<std::string, Job> jobs_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_
