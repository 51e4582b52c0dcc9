// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_
#define RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Which HCAs have been in trouble for less than verdict::kPortPatience, as their nodes' agents say:
// most of these are links that flap, and are back in a moment. One that was in trouble already when
// its node was first seen has been so for long, as far as anybody knows. Pure: the times come from
// outside, and are monotonic. Not thread-safe.
class RailWatch {
 public:
  // A node has changed; null where it was not there before, or is not now.
  void Note(const std::string& node, const verdict::NodeFacts* before,
            const verdict::NodeFacts* after, absl::Time now);
  // Node and device.
  std::set<std::pair<std::string, std::string>> JustLost(absl::Time now);
  // How long until one of this node is lost for good; infinite when none is about to be.
  absl::Duration UntilLost(const std::string& node, absl::Time now) const;

 private:
  std::map<std::pair<std::string, std::string>, absl::Time> lost_;  // since when
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_RAIL_WATCH_H_
