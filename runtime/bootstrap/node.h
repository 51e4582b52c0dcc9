// SPDX-License-Identifier: Apache-2.0
//
// One rank's part in the conversation of the tree: exchanges, verdicts and goodbyes.
//
// Exchange: parts go up, each rank adding its own to those of its children; the root decides what
// they come to, and that goes down again: an answer for all, and one for each rank that nobody but
// those above it has to carry. That is at most 2 * (kArity + 1) messages sent and received for a
// rank.
//
// Location: nobody knows where all others can be reached, which in a large world would be most of
// what a rank knows. Who looks for one asks it, along the tree.
//
// Verdict: who fails, or notices that a connection has ended, reports it upwards. What reaches the
// root first is the job's verdict, and goes down to all; so it is the same everywhere. Only a rank
// that can reach nobody above itself judges alone.
//
// Gone: whose connection ends before all have left is gone, and all that can be reached are told,
// also after the verdict: those that are left may meet again without some (JoinOptions::hopeless).
//
// Goodbye: a rank that needs nobody any more tells its neighbours, who will not take its end for
// a death. When all below it have done so it says that upwards, and the root tells all.
//
// Inquiry: see inquiry.h.
//
// Pure: messages in, messages out; no socket and no clock. Connections are known by the rank at
// their other end. Not thread-safe. Movable.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_NODE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/inquiry.h"
#include "runtime/bootstrap/messages.h"

namespace railhead::bootstrap {

class Node {
 public:
  struct Outgoing {
    int to = 0;
    FrameKind kind = FrameKind::kBye;
    std::shared_ptr<const std::string> payload;  // shared: the same goes to several
  };

  Node(int rank, int world_size);

  // Connections.
  void AttachUp(int rank) { up_.push_back(rank); }
  void AttachDown(int rank) { down_.push_back(rank); }
  // Ends a connection without anybody's death.
  void Detach(int rank);

  // What the root makes of everybody's parts. An error is the job's verdict.
  struct Answer {
    std::string for_all;
    std::vector<std::string> for_each;  // by rank, or nothing
  };
  using Decide = std::function<absl::StatusOr<Answer>(std::vector<std::string> parts)>;

  // What this rank wants.
  // Its part of the next exchange; see TakeResult. All give the same `decide`, the root calls it.
  void Give(absl::StatusOr<std::string> mine, Decide decide);
  void Report(const absl::Status& failure);  // it cannot go on; see verdict
  void Goodbye();                            // it needs nobody any more; see everybody_left
  void SetPlace(std::string place) { place_ = std::move(place); }  // what who looks for it is told
  void Locate(int rank);                                           // see TakeLocated

  // What comes from the others.
  void Receive(int from, FrameKind kind, const std::string& payload);
  void Lost(int neighbour);

  // What time brings. The root, when an exchange takes too long, asks who is missing, waits a
  // little for the answers, and judges; any rank may stop waiting for a verdict and judge alone.
  void AskWhoIsMissing();
  void JudgeMissing();
  void StopWaiting(const absl::Status& reason);

  // What comes of it.
  std::vector<Outgoing> TakeOutgoing();
  // What this rank is answered, once the exchange is through.
  struct Result {
    std::string for_all;
    std::string for_this;
  };
  std::optional<Result> TakeResult() { return std::exchange(result_, {}); }
  // Where the ranks are that it has looked for, and that have answered.
  std::map<int, std::string> TakeLocated() { return std::exchange(located_, {}); }
  // Why the job has failed; OK while it has not.
  const absl::Status& verdict() const { return verdict_; }
  // Ranks that are known to be gone, the first to be known first: others may have left because of
  // it.
  const std::vector<Gone>& gone() const { return gone_; }
  // What this rank has reported, and wants a verdict for.
  const absl::Status& reported() const { return reported_; }
  // Whether it has said goodbye.
  bool leaving() const { return leaving_; }
  bool everybody_left() const { return everybody_left_; }
  // What it has to say goes with TakeOutgoing.
  Inquiry& inquiry() { return inquiry_; }

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const std::vector<int>& down() const { return down_; }
  // "rank 2 (pod a on node b)", with what is known: rank 0 knows all names, others those of their
  // neighbours.
  std::string Describe(int rank) const;
  void SetName(int rank, std::string name) { names_[rank] = std::move(name); }

 private:
  struct Child {
    int rank = 0;
    std::vector<int> subtree;
    std::optional<std::vector<std::string>> parts;  // of the exchange that goes on
  };

  Child* FindChild(int rank);
  std::vector<int> LackingChildren() const;
  void Send(int to, FrameKind kind, std::string payload);
  void SendAll(const std::vector<int>& to, FrameKind kind, std::string payload);
  void SpreadGone(Gone gone);
  void ReceiveGone(int from, absl::string_view payload);
  void Judge(const absl::Status& verdict);
  void ReceiveGather(int from, const std::string& payload);
  void ReceiveAll(int from, const std::string& payload);
  void TakeAnswers(Answers answers);
  void ReceiveLocation(int from, FrameKind kind, const std::string& payload);
  std::optional<int> NextTo(int rank) const;
  void ReceiveAsk(int from);
  void ReceiveMissing(int from, const std::string& payload);
  void ReceiveDone(int from);
  void Nonsense(int from, absl::string_view what);
  void GatherIfComplete();
  bool AllBelowSaidGoodbye() const;
  void SayDone();

  int rank_;
  int world_size_;
  std::vector<int> up_;
  std::vector<int> down_;
  std::vector<Child> children_;
  std::map<int, std::string> names_;
  std::vector<Outgoing> outgoing_;

  uint32_t round_ = 0;               // of the last exchange that is through
  std::optional<std::string> mine_;  // between Give and passing it on
  Decide decide_;
  bool passed_on_ = false;  // between passing it on and everybody's
  std::optional<Result> result_;
  std::set<int> accused_;
  std::set<int> present_;

  std::string place_;
  std::map<int, std::string> located_;

  Inquiry inquiry_;

  absl::Status reported_;
  absl::Status verdict_;
  std::vector<Gone> gone_;

  bool leaving_ = false;
  bool said_done_ = false;
  bool everybody_left_ = false;
  std::set<int> said_bye_;         // neighbours that need nobody
  std::set<int> said_done_below_;  // those below under whom nobody needs anybody
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_NODE_H_
