// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// What a pod has answered so far, to questions of this replica.
struct PageAnswer {
  std::shared_ptr<const verdict::RuntimeReport> report;  // the last; null when there is none
  bool heard = false;                                    // it has answered at least once
  absl::Duration silence;    // how long it has been asked in vain, where there is no report
  absl::Duration unchanged;  // how long the report has said the same
  absl::Duration age;        // since the report was given
};

// What is kept of it. Pure: the times come from outside, and are monotonic.
class PageRecord {
 public:
  // Whether there is something new to judge.
  bool Answered(verdict::RuntimeReport report, absl::Time now);
  // A question was in vain. That is no news, until it has lasted for verdict::kSilence.
  bool Missed(absl::Time now);
  PageAnswer At(absl::Time now) const;

 private:
  std::shared_ptr<const verdict::RuntimeReport> report_;
  bool heard_ = false;
  int misses_ = 0;  // in a row
  // Silence is what lies between two questions: nobody is silent while nobody asks.
  std::optional<absl::Time> missed_since_;
  absl::Time missed_last_;
  absl::Time changed_;
  absl::Time answered_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_
