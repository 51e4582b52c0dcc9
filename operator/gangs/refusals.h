// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_REFUSALS_H_
#define RAILHEAD_OPERATOR_GANGS_REFUSALS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"

namespace railhead::op::gangs {

// Pods that were sent to a node and that the scheduler does not bind there: somebody else has taken
// the node meanwhile, or there is a rule that we do not know. What becomes of them is the machine's
// to say (gang_machine.h). Pure: the time comes from outside.
// Not thread-safe.
class Refusals {
 public:
  // The scheduler tries again itself, as when a pod that ends makes room a moment later.
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  // So long a gang is not sent there again.
  static constexpr absl::Duration kAvoid = absl::Minutes(10);

  // Of all pods those that were released and have been unschedulable for kPatience, by what was
  // seen in this and earlier calls.
  std::vector<PodValue> Due(const std::vector<PodValue>& pods, absl::Time now);

  void Avoid(const std::string& gang_key, const std::string& node, absl::Time now);
  // What is to be avoided at this moment.
  RefusedNodes Nodes(absl::Time now);

 private:
  std::map<std::string, absl::Time> since_;                          // by the pod's uid
  std::map<std::pair<std::string, std::string>, absl::Time> until_;  // by gang and node
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_REFUSALS_H_
