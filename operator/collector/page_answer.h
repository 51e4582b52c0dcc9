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
  std::shared_ptr<const verdict::RuntimeReport> report;   // the last; null when there is none
  std::shared_ptr<const verdict::RuntimeReport> learned;  // as of verdict::Learn
  bool heard = false;                                     // it has named a rank at least once
  bool from_start = false;                                // it has been asked since it started
  absl::Duration silence = absl::ZeroDuration();  // without a report: how long it was asked in vain
  absl::Duration unchanged = absl::ZeroDuration();  // how long the report has said the same
  absl::Duration age = absl::ZeroDuration();        // since the report was given
};

// What is kept of it. Pure: the times come from outside, and are monotonic.
class PageRecord {
 public:
  // Whether there is something new to judge. A page that names no rank is that of a process that
  // has not begun or has ended, or somebody else's: a question in vain.
  bool Answered(verdict::RuntimeReport report, absl::Time now);
  // A question was in vain. That is no news, until it has lasted for verdict::kSilence.
  bool Missed(absl::Time now);
  PageAnswer At(absl::Time now) const;

 private:
  bool MissedSince(absl::Time now);

  std::shared_ptr<const verdict::RuntimeReport> report_;
  std::shared_ptr<const verdict::RuntimeReport> learned_;
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
