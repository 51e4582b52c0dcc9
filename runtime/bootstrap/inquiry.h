// SPDX-License-Identifier: Apache-2.0
//
// One rank's part in an inquiry: a status query to all ranks after one makes no progress.
//
// A rank without progress requests an inquiry upwards. The root queries all ranks: the query goes
// to children and grandchildren, so that a stopped rank does not hide the ranks below it. Replies
// go to parent and grandparent, each rank adding its own; a rank that does not reply in time is
// reported as such, or as left. The root's report goes down to all. A rank whose request is not
// answered queries the ranks below it.
//
// A reply that comes too late, because a machine is busy, is not lost: the rank that gets it adds
// it to its next reply or result, unless it has a newer one. So a rank that always replies too late
// does not count as stopped.
//
// Each rank exchanges a few messages with each tree peer. If many ranks request at once, only one
// request is forwarded, and none for a time after a report: one that comes then is kept until that
// time is over.
//
// Pure: messages in, messages out, as Node, which owns it. Contents of replies and reports are
// opaque.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/messages.h"

namespace railhead::bootstrap {

class Inquiry {
 public:
  // A message to all tree peers on that side.
  struct Message {
    bool up = false;
    FrameKind kind = FrameKind::kCall;
    std::string payload;
  };
  struct Answer {
    enum class How { kGiven, kSilent, kNotAsked, kLeft };
    How how = How::kNotAsked;
    std::string text;  // if kGiven
  };

  Inquiry(int rank, int world_size);

  // Requests of this rank: an inquiry by the root; or a query of all ranks below it.
  void Call();
  void Ask();
  // Supplies this rank's reply after asked(), and its report after TakeAnswers().
  void Testify(std::string mine);
  void Tell(std::string report);

  // Notes that the connections of a rank have ended after it left: it does not reply, and no reply
  // is missing.
  void Left(int rank);

  // Processes a message. An error is a protocol violation.
  absl::Status Receive(int from, FrameKind kind, absl::string_view payload);

  // Timeouts: stop waiting for replies; allow requests again after a report, and make the one that
  // was kept.
  void Hurry();
  void Reopen();

  // State. A request waits for a report; a root's own waits for Ask().
  bool called() const { return called_; }
  bool quiet() const { return quiet_; }
  // Returns true if a request is kept for Reopen().
  bool missed() const { return missed_; }
  bool asked() const { return asked_; }
  bool gathering() const { return question_.has_value(); }
  // Number of the query in progress; both ranks of a pair know the same.
  uint32_t number() const { return gathering() ? question_->number : 0; }
  // By rank.
  std::optional<std::vector<Answer>> TakeAnswers() { return std::exchange(result_, {}); }
  std::optional<std::string> TakeReport() { return std::exchange(report_, {}); }
  std::vector<Message> TakeOutgoing() { return std::exchange(outgoing_, {}); }

 private:
  void Begin(const Question& question);
  void BeginIfNew(const Question& question);
  void CloseIfComplete();
  bool Complete() const;
  void Close();
  std::vector<Answer> Result() const;
  void Hear(const Question& question, std::string report);
  absl::Status ReceiveQuestion(absl::string_view payload);
  absl::Status ReceiveTestimony(int from, absl::string_view payload);
  absl::Status ReceiveReport(absl::string_view payload);

  int rank_;
  int world_size_;
  size_t below_;  // ranks in its subtree, including itself
  std::vector<Message> outgoing_;

  uint32_t number_ = 0;           // of this rank's last query
  std::map<int, uint32_t> seen_;  // last query of each rank above
  std::map<int, uint32_t> told_;  // last report of each
  bool called_ = false;
  bool quiet_ = false;
  bool missed_ = false;
  bool asked_ = false;
  std::optional<Question> question_;  // the query in progress
  std::map<int, std::string> answers_;
  std::map<int, std::string> late_;  // answers to earlier queries, since the last one ended
  std::map<int, Question> newest_;   // of those that each rank below has answered
  std::set<int> left_;
  std::optional<std::vector<Answer>> result_;
  std::optional<std::string> report_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_
