// SPDX-License-Identifier: Apache-2.0
//
// One rank's part in an inquiry: where is everybody?
//
// A rank that stands still calls upwards for one. The root asks all; the question goes down to
// children and grandchildren, so that a rank that is stopped hides nobody who is below it. Answers
// go up to parent and guardian, each rank adding its own to those of the ranks below it; a rank
// that does not answer in time is known by its silence. What the root makes of them, the report,
// goes down to all. Who calls in vain, because nobody above it answers, asks the ranks below it.
//
// That is for any rank a few messages with each of its neighbours. Everybody may call at the same
// time: only one call is passed on, and none for a while after a report.
//
// Pure: messages in, messages out, as for the Node that it is a part of. What is said in an
// inquiry is the owner's.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_

#include <cstdint>
#include <map>
#include <optional>
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
  // To all neighbours on that side.
  struct Message {
    bool up = false;
    FrameKind kind = FrameKind::kCall;
    std::string payload;
  };
  struct Answer {
    enum class How { kGiven, kSilent, kNotAsked };
    How how = How::kNotAsked;
    std::string text;  // if given
  };

  Inquiry(int rank, int world_size);

  // What this rank wants: that somebody asks all; to ask all below it itself.
  void Call();
  void Ask();
  // What it has to say, once it is asked; and, when it has asked, once it has the answers.
  void Testify(std::string mine);
  void Tell(std::string report);

  // What comes from the others. An error is nonsense, which nobody who follows this text sends.
  absl::Status Receive(int from, FrameKind kind, absl::string_view payload);

  // What time brings: it waits no longer for answers; there may be calls after a report again.
  void Hurry();
  void Reopen() { quiet_ = false; }

  // What comes of it. A call waits for a report; that of the root, for it to ask.
  bool called() const { return called_; }
  bool quiet() const { return quiet_; }
  bool asked() const { return asked_; }
  bool gathering() const { return question_.has_value(); }
  // By rank.
  std::optional<std::vector<Answer>> TakeAnswers() { return std::exchange(result_, {}); }
  std::optional<std::string> TakeReport() { return std::exchange(report_, {}); }
  std::vector<Message> TakeOutgoing() { return std::exchange(outgoing_, {}); }

 private:
  void Begin(const Question& question);
  void BeginIfNew(const Question& question);
  void CloseIfComplete();
  void Close();
  std::vector<Answer> Result() const;
  void Hear(const Question& question, std::string report);
  absl::Status ReceiveQuestion(absl::string_view payload);
  absl::Status ReceiveTestimony(int from, absl::string_view payload);
  absl::Status ReceiveReport(absl::string_view payload);

  int rank_;
  int world_size_;
  size_t below_;  // ranks in its part of the tree, with itself
  std::vector<Message> outgoing_;

  uint32_t number_ = 0;           // of its own last question
  std::map<int, uint32_t> seen_;  // the last question of each rank above
  std::map<int, uint32_t> told_;  // the last report of each
  bool called_ = false;
  bool quiet_ = false;
  bool asked_ = false;
  std::optional<Question> question_;  // for which it gathers answers
  std::map<int, std::string> answers_;
  std::optional<std::vector<Answer>> result_;
  std::optional<std::string> report_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_INQUIRY_H_
