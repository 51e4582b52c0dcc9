// SPDX-License-Identifier: Apache-2.0
//
// Scrape results of one pod: its last report, and for how long scrapes have failed. Used by
// PagePoller.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Current scrape results of a pod, from this replica.
struct PageAnswer {
  std::shared_ptr<const verdict::RuntimeReport> report;   // the last one; null if none
  std::shared_ptr<const verdict::RuntimeReport> learned;  // from verdict::Learn
  bool heard = false;                                     // has named a rank at least once
  bool from_start = false;                                // scraped since the pod started
  absl::Duration silence = absl::ZeroDuration();  // without a report: how long scrapes have failed
  absl::Duration unchanged = absl::ZeroDuration();  // time since the report last changed
  absl::Duration age = absl::ZeroDuration();        // time since the report was received
};

// Stored scrape results of a pod. Pure; the caller passes monotonic times.
class PageRecord {
 public:
  // Records a response. Returns true if the pod must be diagnosed again. A response without a rank
  // counts as failed: its process has not begun, has ended, or belongs to another program.
  bool Answered(verdict::RuntimeReport report, absl::Time now);
  // Records a failed scrape. Returns true only after verdict::kSilence of failures.
  bool Missed(absl::Time now);
  PageAnswer At(absl::Time now) const;

 private:
  bool MissedSince(absl::Time now);

  std::shared_ptr<const verdict::RuntimeReport> report_;
  std::shared_ptr<const verdict::RuntimeReport> learned_;
  bool heard_ = false;
  int misses_ = 0;  // consecutive
  // Failures count from the first to the last failed scrape, not while there are no scrapes.
  std::optional<absl::Time> missed_since_;
  absl::Time missed_last_;
  absl::Time changed_;
  absl::Time answered_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_ANSWER_H_
