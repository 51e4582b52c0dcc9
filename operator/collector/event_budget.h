// SPDX-License-Identifier: Apache-2.0
//
// Budget for Events, in total and per namespace, so that thousands of pods in one namespace cannot
// suppress another's Events. Used by FindingEvents.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_
#define RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "kube/events.h"

namespace railhead::op {

// Pure; the caller passes the time.
class EventBudget {
 public:
  struct Options {
    kube::EventLimits all;
    kube::EventLimits of_one;  // per namespace
    // Last part of `all`, reserved for namespaces that have used less than half of their burst.
    double reserve = 0;
  };

  explicit EventBudget(Options options) : options_(options) {}

  // Returns whether an Event may be created in this namespace.
  bool Allows(const std::string& space, absl::Time now);
  // Call after creating one.
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
  std::map<std::string, Bucket> spaces_;  // without those that have their full burst
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_EVENT_BUDGET_H_
