// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_answer.h"

#include <utility>

#include "operator/verdict/judge.h"
#include "operator/verdict/learned.h"

namespace railhead::op {
namespace {

// A pod that misses one question may be busy; one that misses three has ended its runtime.
constexpr int kForgetAfter = 3;

}  // namespace

bool PageRecord::Answered(verdict::RuntimeReport report, absl::Time now) {
  if (report.ranks.empty()) {
    const bool ended = report_ != nullptr;
    report_ = nullptr;
    return MissedSince(now) || ended;
  }
  heard_ = true;
  misses_ = 0;
  missed_since_.reset();
  answered_ = now;
  if (report_ != nullptr && *report_ == report) return false;
  report_ = std::make_shared<const verdict::RuntimeReport>(std::move(report));
  learned_ = verdict::Learn(learned_, report_);
  changed_ = now;
  return true;
}

bool PageRecord::Missed(absl::Time now) {
  ++misses_;
  const bool ended = report_ != nullptr && misses_ >= kForgetAfter;
  if (ended) report_ = nullptr;
  return MissedSince(now) || ended;
}

bool PageRecord::MissedSince(absl::Time now) {
  const absl::Duration before =
      missed_since_.has_value() ? missed_last_ - *missed_since_ : absl::ZeroDuration();
  if (!missed_since_.has_value()) missed_since_ = now;
  missed_last_ = now;
  return before < verdict::kSilence && now - *missed_since_ >= verdict::kSilence;
}

PageAnswer PageRecord::At(absl::Time now) const {
  PageAnswer answer;
  answer.report = report_;
  answer.learned = learned_;
  answer.heard = heard_;
  if (report_ != nullptr) {
    answer.unchanged = now - changed_;
    answer.age = now - answered_;
  } else if (missed_since_.has_value()) {
    answer.silence = missed_last_ - *missed_since_;
  }
  return answer;
}

}  // namespace railhead::op
