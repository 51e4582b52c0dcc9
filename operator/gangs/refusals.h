// SPDX-License-Identifier: Apache-2.0
//
// Released pods that the scheduler does not bind to their node: other pods took the node, or an
// unknown rule applies. The gang machine decides what becomes of them (gang_machine.h).
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

// Pure; the caller passes the time. Not thread-safe.
class Refusals {
 public:
  // The scheduler retries itself, for example when a pod that ends makes room.
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  // Time for which a gang avoids the node.
  static constexpr absl::Duration kAvoid = absl::Minutes(10);

  // Returns the released pods that have been unschedulable for kPatience, as observed by this and
  // earlier calls.
  std::vector<PodValue> Due(const std::vector<PodValue>& pods, absl::Time now);

  void Avoid(const std::string& gang_key, const std::string& node, absl::Time now);
  // Returns the nodes to avoid now.
  RefusedNodes Nodes(absl::Time now);

 private:
  std::map<std::string, absl::Time> since_;                          // by the pod's uid
  std::map<std::pair<std::string, std::string>, absl::Time> until_;  // by gang and node
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_REFUSALS_H_
