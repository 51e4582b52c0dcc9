// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_
#define RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "kube/events.h"

namespace railhead::op {

// How many Events may be made, for the whole cluster and for each namespace, so that thousands of
// pods of one cannot silence the pods of another. Pure: the time comes from outside.
class EventBudget {
 public:
  struct Options {
    kube::EventLimits all;
    kube::EventLimits of_one;  // namespace
    // The last of `all`: for namespaces that have used less than half of their own burst.
    double reserve = 0;
  };

  explicit EventBudget(Options options) : options_(options) {}

  // Whether an Event may be made in this namespace.
  bool Allows(const std::string& space, absl::Time now);
  // It was made.
  void Spend(const std::string& space, absl::Time now);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Time filled = absl::InfinitePast();
  };

  static void Fill(const kube::EventLimits& limits, absl::Time now, Bucket& bucket);
  Bucket& BucketOf(const std::string& space, absl::Time now);

  const Options options_;
  Bucket all_;
  std::map<std::string, Bucket> spaces_;  // that have not their whole burst
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_
