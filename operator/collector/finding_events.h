// SPDX-License-Identifier: Apache-2.0
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

// Tells of each finding once, by an Event on its pod (on the pod's controller, of what admission
// did not do: the controller has read the warning, and nobody else); again when it has been gone,
// and its Event is. Of one reason in one job sixteen warnings are told within the hour for which
// Events live: hundreds of the same would drive out of the cluster's memory what else has happened.
// Of what is only to be known one pod of a job is told, and never at the expense of a warning.
// Namespaces have budgets of their own, and what is left of the cluster's is kept for those that
// were silent. The name of an Event is made of pod, reason and part, so another replica that finds
// the same tells it no second time, whatever numbers it sees.
//
// Rights needed: create events. Not thread-safe.
class FindingEvents {
 public:
  // `host`: this replica. `now`: the time of day; `clock` is monotonic. `api` must outlive this.
  FindingEvents(kube::Api* api, const std::string& host, const std::function<absl::Time()>& now,
                const std::function<absl::Time()>& clock);

  // Tells what is new of a job, in their order. The first error ends it: the rest is told when this
  // is called again. Where the server refuses Events of this job, no more are tried for a while,
  // and that is an error once.
  absl::Status Tell(const std::string& job, const verdict::JobFacts& facts,
                    const std::vector<verdict::Finding>& findings);
  // The job is gone.
  void Forget(const std::string& job);

 private:
  using Key = std::pair<std::string, std::string>;  // a pod's uid, and the part
  struct Told {
    absl::Time at;
    absl::Time found;  // for the last time
  };
  using Kind = std::pair<verdict::Reason, verdict::Severity>;
  struct Job {
    std::map<Kind, std::map<Key, Told>> told;
    absl::Time refused_until = absl::InfinitePast();
  };

  // Whether one more of this kind may be told.
  static bool HasRoom(const std::map<Key, Told>& told, verdict::Severity severity, absl::Time now);
  kube::EventRecorder& RecorderOf(verdict::Severity severity);
  EventBudget& BudgetOf(verdict::Severity severity);

  const std::function<absl::Time()> clock_;
  kube::EventRecorder warnings_;
  kube::EventRecorder infos_;
  EventBudget warning_budget_;
  EventBudget info_budget_;
  std::map<std::string, Job> jobs_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_
