// SPDX-License-Identifier: Apache-2.0
//
// One rank's state in the tree: exchanges, failure and leave.
//
// Exchange: contributions go up, each rank adding its own to its children's; the root computes a
// result for all and one per rank, which go down; a rank's own result passes only the ranks above
// it. Each rank sends and receives at most 2 * (kArity + 1) messages.
//
// Location: no rank stores the addresses of all others, which in a large world would be most of its
// data. A rank that needs one requests it along the tree.
//
// Verdict: a rank that fails, or detects the end of a connection, reports it upwards. The first
// report at the root becomes the job's verdict and goes down to all, so it is the same everywhere.
// Only a rank that can reach no rank above decides alone.
//
// Gone: a rank whose connection ends before all have left is gone. All reachable ranks are
// notified, also after the verdict: the remaining ranks may meet again without it
// (JoinOptions::hopeless).
//
// Leave: a rank that is finished notifies its tree peers, which then do not take its end for a
// failure. When all below have left, it reports that upwards, and the root notifies all. Later
// failures of ranks that have left are none.
//
// Inquiry: see inquiry.h.
//
// Pure: messages in, messages out; no socket or clock. Connections are identified by the rank at
// the other end. Not thread-safe. Movable.
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
    std::shared_ptr<const std::string> payload;  // shared between several receivers
  };

  Node(int rank, int world_size);

  // Connections:
  void AttachUp(int rank) { up_.push_back(rank); }
  void AttachDown(int rank) { down_.push_back(rank); }
  // Ends a connection without reporting a failure.
  void Detach(int rank);

  // The root's result of an exchange. An error becomes the job's verdict.
  struct Answer {
    std::string for_all;
    std::vector<std::string> for_each;  // by rank, or empty
  };
  using Decide = std::function<absl::StatusOr<Answer>(std::vector<std::string> parts)>;

  // Requests of this rank:
  // Its contribution to the next exchange; see TakeResult. All pass the same `decide`; the root
  // calls it.
  void Give(absl::StatusOr<std::string> mine, Decide decide);
  void Report(const absl::Status& failure);  // it cannot continue; see verdict
  void Goodbye();                            // it is finished; see everybody_left
  void SetPlace(std::string place) { place_ = std::move(place); }  // answer to Locate of this rank
  void Locate(int rank);                                           // see TakeLocated

  // Input:
  void Receive(int from, FrameKind kind, const std::string& payload);
  void Lost(int neighbour);

  // Timeouts: if an exchange is slow, the root queries which ranks are missing, waits briefly for
  // answers, and decides; any rank may stop waiting for a verdict and decide alone.
  void AskWhoIsMissing();
  void JudgeMissing();
  void StopWaiting(const absl::Status& reason);

  // Output:
  std::vector<Outgoing> TakeOutgoing();
  // Result for this rank, after the exchange.
  struct Result {
    std::string for_all;
    std::string for_this;
  };
  std::optional<Result> TakeResult() { return std::exchange(result_, {}); }
  // Addresses requested with Locate that have arrived.
  std::map<int, std::string> TakeLocated() { return std::exchange(located_, {}); }
  // Why the job failed; OK if it has not.
  const absl::Status& verdict() const { return verdict_; }
  // Ranks known to be gone, in order of detection: later ones may have left because of the first.
  const std::vector<Gone>& gone() const { return gone_; }
  // Failure reported by this rank, waiting for a verdict.
  const absl::Status& reported() const { return reported_; }
  // Returns true after Goodbye.
  bool leaving() const { return leaving_; }
  bool everybody_left() const { return everybody_left_; }
  // TakeOutgoing also returns its messages.
  Inquiry& inquiry() { return inquiry_; }

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const std::vector<int>& down() const { return down_; }
  // Returns "rank 2 (pod a on node b)", as far as known: rank 0 knows all names, others those of
  // their tree peers.
  std::string Describe(int rank) const;
  void SetName(int rank, std::string name) { names_[rank] = std::move(name); }

 private:
  struct Child {
    int rank = 0;
    std::vector<int> subtree;
    std::optional<std::vector<std::string>> parts;  // to the current exchange
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
  // Returns true if a tree peer has left, as it has reported, or others for it.
  bool HasLeft(int neighbour) const;
  void SayDone();

  int rank_;
  int world_size_;
  std::vector<int> up_;
  std::vector<int> down_;
  std::vector<Child> children_;
  std::map<int, std::string> names_;
  std::vector<Outgoing> outgoing_;

  uint32_t round_ = 0;               // of the last complete exchange
  std::optional<std::string> mine_;  // between Give and forwarding it
  Decide decide_;
  bool passed_on_ = false;  // between forwarding it and the result
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
  std::set<int> said_bye_;         // tree peers that have left
  std::set<int> said_done_below_;  // children whose subtrees have left
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_NODE_H_
