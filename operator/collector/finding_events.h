// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_
#define RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op {

// Tells of each finding once, by an Event on its pod. Of one reason in one job the first sixteen
// are told: hundreds of the same would drive out of the cluster's memory what else has happened.
// The name of an Event is made of pod, reason and part, so another replica that finds the same
// tells it no second time, whatever numbers it sees.
//
// Rights needed: create events. Not thread-safe.
class FindingEvents {
 public:
  // `host`: this replica. `clock`: the time of day. `api` must outlive this.
  FindingEvents(kube::Api* api, std::string host, std::function<absl::Time()> clock);

  // Tells what is new of a job, in their order; a finding that comes back is not. The first error
  // ends it: the rest is told when this is called again.
  absl::Status Tell(const std::string& job, const verdict::JobFacts& facts,
                    const std::vector<verdict::Finding>& findings);
  // The job is gone.
  void Forget(const std::string& job);

 private:
  // By pod and part, of each reason; of the pods that are there.
  using Told = std::map<verdict::Reason, std::set<std::pair<std::string, std::string>>>;

  kube::EventRecorder recorder_;
  std::map<std::string, Told> told_;  // by job
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_FINDING_EVENTS_H_
