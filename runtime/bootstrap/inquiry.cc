// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/inquiry.h"

#include <algorithm>

#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {

Inquiry::Inquiry(int rank, int world_size)
    : rank_(rank), world_size_(world_size), below_(Subtree(rank, world_size).size()) {}

void Inquiry::Call() {
  if (called_) return;
  // The caller's quiet time may end before this rank's does: the request is kept for Reopen().
  if (quiet_) {
    missed_ = true;
    return;
  }
  // The root's own question is answered soon.
  if (rank_ == 0 && gathering()) return;
  called_ = true;
  if (rank_ != 0) outgoing_.push_back({true, FrameKind::kCall, ""});
}

void Inquiry::Reopen() {
  quiet_ = false;
  if (std::exchange(missed_, false)) Call();
}

void Inquiry::Ask() {
  called_ = false;
  Begin({rank_, ++number_});
}

void Inquiry::Begin(const Question& question) {
  question_ = question;
  answers_.clear();
  asked_ = true;
  outgoing_.push_back({false, FrameKind::kQuestion, EncodeQuestion(question)});
}

void Inquiry::Testify(std::string mine) {
  if (!asked_) return;
  asked_ = false;
  answers_[rank_] = std::move(mine);
  CloseIfComplete();
}

void Inquiry::Left(int rank) {
  left_.insert(rank);
  if (gathering()) CloseIfComplete();
}

bool Inquiry::Complete() const {
  // It may have answered before it left.
  const auto missing = [this](int rank) {
    return IsAbove(rank_, rank) && answers_.count(rank) == 0;
  };
  const auto left = std::count_if(left_.begin(), left_.end(), missing);
  return answers_.size() + static_cast<size_t>(left) == below_;
}

void Inquiry::CloseIfComplete() {
  if (Complete()) Close();
}

void Inquiry::Hurry() {
  if (gathering()) Close();
}

void Inquiry::Close() {
  asked_ = false;
  answers_.merge(std::exchange(late_, {}));
  if (question_->asker == rank_) {
    result_ = Result();
  } else {
    outgoing_.push_back(
        {true, FrameKind::kTestimony, EncodeTestimony({*question_, std::move(answers_)})});
  }
  answers_.clear();
  question_.reset();
}

std::vector<Inquiry::Answer> Inquiry::Result() const {
  std::vector<Answer> result(static_cast<size_t>(world_size_));
  const auto answered = [&](std::optional<int> rank) {
    return rank.has_value() && answers_.count(*rank) > 0;
  };
  for (const int rank : Subtree(rank_, world_size_)) {
    Answer& answer = result[static_cast<size_t>(rank)];
    if (const auto given = answers_.find(rank); given != answers_.end()) {
      answer = {Answer::How::kGiven, given->second};
    } else if (rank == rank_ || answered(Parent(rank)) || answered(Guardian(rank))) {
      answer.how = Answer::How::kSilent;
    }
  }
  // A rank queries the others itself only after its request to those above was not answered.
  for (const std::optional<int> above : {Parent(rank_), Guardian(rank_)}) {
    if (above.has_value()) result[static_cast<size_t>(*above)].how = Answer::How::kSilent;
  }
  for (const int rank : left_) {
    Answer& answer = result[static_cast<size_t>(rank)];
    if (answer.how != Answer::How::kGiven) answer.how = Answer::How::kLeft;
  }
  return result;
}

void Inquiry::Tell(std::string report) {
  report.resize(std::min(report.size(), kReportLimit));
  Hear({rank_, number_}, std::move(report));
}

void Inquiry::Hear(const Question& question, std::string report) {
  outgoing_.push_back({false, FrameKind::kReport, EncodeInquiryReport({question, report})});
  report_ = std::move(report);
  called_ = false;
  // This report also answers requests that were kept.
  missed_ = false;
  quiet_ = true;
}

absl::Status Inquiry::Receive(int from, FrameKind kind, absl::string_view payload) {
  const bool from_above = from == Parent(rank_) || from == Guardian(rank_);
  switch (kind) {
    case FrameKind::kCall:
      if (from_above || !payload.empty()) return absl::InternalError("a malformed call");
      Call();
      return absl::OkStatus();
    case FrameKind::kTestimony:
      if (from_above) return absl::InternalError("a testimony from above");
      return ReceiveTestimony(from, payload);
    case FrameKind::kQuestion:
      if (!from_above) return absl::InternalError("kQuestion from neither parent nor grandparent");
      return ReceiveQuestion(payload);
    default:
      if (!from_above) return absl::InternalError("kReport from neither parent nor grandparent");
      return ReceiveReport(payload);
  }
}

absl::Status Inquiry::ReceiveQuestion(absl::string_view payload) {
  const absl::StatusOr<Question> question = ParseQuestion(payload, world_size_);
  if (!question.ok()) return question.status();
  if (!IsAbove(question->asker, rank_)) return absl::InternalError("another rank's question");
  BeginIfNew(*question);
  return absl::OkStatus();
}

void Inquiry::BeginIfNew(const Question& question) {
  uint32_t& seen = seen_[question.asker];
  if (question.number <= seen) return;
  seen = question.number;
  Begin(question);
}

absl::Status Inquiry::ReceiveTestimony(int from, absl::string_view payload) {
  absl::StatusOr<Testimony> testimony = ParseTestimony(payload, world_size_);
  if (!testimony.ok()) return testimony.status();
  for (const auto& [rank, text] : testimony->answers) {
    if (rank != from && !IsAbove(from, rank)) return absl::InternalError("another rank's answer");
  }
  // The query comes from parent and grandparent, so an answer may arrive before it.
  if (IsAbove(testimony->question.asker, rank_)) BeginIfNew(testimony->question);
  const bool late = question_ != testimony->question;
  for (auto& [rank, text] : testimony->answers) {
    // Most answers arrive twice: from the rank's parent, and from its grandparent.
    Question& newest = newest_[rank];
    if (newest.asker == testimony->question.asker && newest.number >= testimony->question.number) {
      continue;
    }
    newest = testimony->question;
    (late ? late_ : answers_)[rank] = std::move(text);
  }
  if (!late) CloseIfComplete();
  return absl::OkStatus();
}

absl::Status Inquiry::ReceiveReport(absl::string_view payload) {
  absl::StatusOr<InquiryReport> report = ParseInquiryReport(payload, world_size_);
  if (!report.ok()) return report.status();
  const Question& question = report->question;
  if (!IsAbove(question.asker, rank_)) return absl::InternalError("another rank's report");
  uint32_t& told = told_[question.asker];
  if (question.number <= told) return absl::OkStatus();
  told = question.number;
  Hear(question, std::move(report->text));
  return absl::OkStatus();
}

}  // namespace railhead::bootstrap
