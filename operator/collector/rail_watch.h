// SPDX-License-Identifier: Apache-2.0
//
// Debouncer for rails: tracks HCAs that have been faulty for less than verdict::kPortPatience, as
// their nodes' agents report; most of these are flapping links that recover at once. Used by
// Collector.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_
#define RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// An HCA that was faulty when its node was first seen counts as faulty for long. Pure; the caller
// passes monotonic times. Not thread-safe.
class RailWatch {
 public:
  // Records a change of a node; null: absent before, or now.
  void Note(const std::string& node, const verdict::NodeFacts* before,
            const verdict::NodeFacts* after, absl::Time now);
  // Returns node and device of recently lost HCAs.
  std::set<std::pair<std::string, std::string>> JustLost(absl::Time now);
  // Returns the time until the next one of this node counts as lost; infinite if there is none.
  absl::Duration UntilLost(const std::string& node, absl::Time now) const;

 private:
  std::map<std::pair<std::string, std::string>, absl::Time> lost_;  // time of the loss
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_
