// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/node.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {
namespace {

bool Has(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Returns true if the tree connects them. Others are connected to rank 0 until it is built.
bool AreNeighbours(int one, int other) {
  return Parent(one) == other || Guardian(one) == other || Parent(other) == one ||
         Guardian(other) == one;
}

}  // namespace

Node::Node(int rank, int world_size)
    : rank_(rank), world_size_(world_size), inquiry_(rank, world_size) {
  for (const int child : Children(rank, world_size)) {
    children_.push_back({child, Subtree(child, world_size), std::nullopt});
  }
}

std::string Node::Describe(int rank) const {
  const auto name = names_.find(rank);
  return DescribeRank(rank, name == names_.end() ? "" : name->second);
}

void Node::Detach(int rank) {
  up_.erase(std::remove(up_.begin(), up_.end(), rank), up_.end());
  down_.erase(std::remove(down_.begin(), down_.end(), rank), down_.end());
}

Node::Child* Node::FindChild(int rank) {
  const auto child = std::find_if(children_.begin(), children_.end(),
                                  [rank](const Child& c) { return c.rank == rank; });
  return child == children_.end() ? nullptr : &*child;
}

void Node::Send(int to, FrameKind kind, std::string payload) {
  outgoing_.push_back({to, kind, std::make_shared<const std::string>(std::move(payload))});
}

void Node::SendAll(const std::vector<int>& to, FrameKind kind, std::string payload) {
  const auto shared = std::make_shared<const std::string>(std::move(payload));
  for (const int rank : to) outgoing_.push_back({rank, kind, shared});
}

std::vector<Node::Outgoing> Node::TakeOutgoing() {
  for (Inquiry::Message& message : inquiry_.TakeOutgoing()) {
    SendAll(message.up ? up_ : down_, message.kind, std::move(message.payload));
  }
  return std::exchange(outgoing_, {});
}

// ---- Exchange ----

void Node::Give(absl::StatusOr<std::string> mine, Decide decide) {
  if (!mine.ok()) {
    Report(mine.status());
    return;
  }
  mine_ = *std::move(mine);
  decide_ = std::move(decide);
  GatherIfComplete();
}

void Node::GatherIfComplete() {
  if (!mine_.has_value() || !LackingChildren().empty() || !verdict_.ok()) return;
  // In the order of Subtree(rank_).
  Parts parts{round_ + 1, {*std::exchange(mine_, std::nullopt)}};
  size_t bytes = 0;
  for (Child& child : children_) {
    for (std::string& part : *child.parts) parts.parts.push_back(std::move(part));
    child.parts.reset();
  }
  for (const std::string& part : parts.parts) bytes += part.size() + sizeof(uint32_t);
  if (bytes > kAllLimit) {
    Report(absl::ResourceExhaustedError(absl::StrCat(
        Describe(rank_), " has ", bytes, " bytes of an exchange that takes ", kAllLimit)));
    return;
  }
  if (rank_ != 0) {
    passed_on_ = true;
    Send(*Parent(rank_), FrameKind::kGather, EncodeParts(parts));
    return;
  }
  const std::vector<int> order = Subtree(0, world_size_);
  std::vector<std::string> by_rank(parts.parts.size());
  for (size_t i = 0; i < order.size(); ++i) {
    by_rank[static_cast<size_t>(order[i])] = std::move(parts.parts[i]);
  }
  absl::StatusOr<Answer> answer = decide_(std::move(by_rank));
  if (!answer.ok()) {
    Report(answer.status());
    return;
  }
  Answers answers{round_ + 1, std::move(answer->for_all), {}};
  for (const int rank : order) {
    if (answer->for_each.empty()) break;
    answers.for_each.push_back(std::move(answer->for_each[static_cast<size_t>(rank)]));
  }
  accused_.clear();
  present_.clear();
  TakeAnswers(std::move(answers));
}

// Keeps what is for this rank, and passes on what is for those below it.
void Node::TakeAnswers(Answers answers) {
  round_ = answers.round;
  const std::vector<std::string> for_each = std::exchange(answers.for_each, {});
  if (for_each.empty()) {
    SendAll(Children(rank_, world_size_), FrameKind::kAll, EncodeAnswers(answers));
  }
  // `for_each` is in the order of Subtree: one child's subtree after the other.
  auto next = for_each.begin() + (for_each.empty() ? 0 : 1);
  for (const Child& child : children_) {
    if (for_each.empty()) break;
    const auto end = next + static_cast<ptrdiff_t>(child.subtree.size());
    answers.for_each.assign(next, end);
    next = end;
    Send(child.rank, FrameKind::kAll, EncodeAnswers(answers));
  }
  result_ = {std::move(answers.for_all), for_each.empty() ? "" : for_each.front()};
}

std::vector<int> Node::LackingChildren() const {
  std::vector<int> lacking;
  for (const Child& child : children_) {
    if (!child.parts.has_value()) lacking.push_back(child.rank);
  }
  return lacking;
}

void Node::ReceiveGather(int from, const std::string& payload) {
  Child* child = FindChild(from);
  if (child == nullptr || child->parts.has_value()) {
    Nonsense(from, "unexpected parts");
    return;
  }
  absl::StatusOr<Parts> parts = ParseParts(payload, child->subtree.size());
  if (!parts.ok() || parts->round != round_ + 1) {
    Nonsense(from, parts.ok() ? "parts of another exchange" : parts.status().message());
    return;
  }
  child->parts = std::move(parts->parts);
  GatherIfComplete();
}

void Node::ReceiveAll(int from, const std::string& payload) {
  if (Parent(rank_) != from) {
    Nonsense(from, "answers");
    return;
  }
  size_t below = 1;
  for (const Child& child : children_) below += child.subtree.size();
  absl::StatusOr<Answers> answers = ParseAnswers(payload, below);
  if (!answers.ok() || answers->round != round_ + 1 || !passed_on_) {
    Nonsense(from, answers.ok() ? "answers of another exchange" : answers.status().message());
    return;
  }
  passed_on_ = false;
  TakeAnswers(*std::move(answers));
}

void Node::AskWhoIsMissing() {
  const std::vector<int> lacking = LackingChildren();
  accused_.insert(lacking.begin(), lacking.end());
  SendAll(lacking, FrameKind::kAsk, "");
}

void Node::ReceiveAsk(int from) {
  if (!Has(up_, from)) {
    Nonsense(from, "kAsk from neither parent nor grandparent");
    return;
  }
  // No answer before Give, as this rank is missing, or once its parts are forwarded: in flight.
  if (!mine_.has_value()) return;
  const std::vector<int> lacking = LackingChildren();
  Send(from, FrameKind::kMissing, EncodeMissing({rank_, lacking}));
  SendAll(lacking, FrameKind::kAsk, "");
}

void Node::ReceiveMissing(int from, const std::string& payload) {
  const absl::StatusOr<Missing> missing = ParseMissing(payload, world_size_);
  if (!missing.ok() || !Has(down_, from)) {
    Nonsense(from, "a malformed list of missing ranks");
    return;
  }
  if (rank_ != 0) {
    Send(*Parent(rank_), FrameKind::kMissing, payload);
    return;
  }
  present_.insert(missing->rank);
  accused_.insert(missing->children.begin(), missing->children.end());
}

void Node::JudgeMissing() {
  std::vector<std::string> missing;
  for (const int rank : accused_) {
    if (present_.count(rank) == 0) missing.push_back(Describe(rank));
  }
  Judge(absl::DeadlineExceededError(
      missing.empty() ? "the ranks' first exchange timed out while the job was "
                        "set up"
                      : absl::StrCat(absl::StrJoin(missing, ", "),
                                     " did not answer in time while the job was set up")));
}

// ---- Verdict ----

void Node::Report(const absl::Status& failure) {
  if (!verdict_.ok() || !reported_.ok()) return;
  if (up_.empty()) {
    Judge(failure);
    return;
  }
  reported_ = failure;
  // To parent and grandparent: one of them may be dead or hang.
  SendAll(up_, FrameKind::kFail, EncodeFailure(failure));
}

void Node::Judge(const absl::Status& verdict) {
  if (!verdict_.ok()) return;
  verdict_ = verdict;
  // To the grandchildren too: a child may be dead or hang.
  SendAll(down_, FrameKind::kFail, EncodeFailure(verdict));
}

void Node::StopWaiting(const absl::Status& reason) { Judge(reported_.ok() ? reason : reported_); }

void Node::Nonsense(int from, absl::string_view what) {
  Report(absl::InternalError(absl::StrCat(Describe(from), " violated the protocol: ", what)));
}

void Node::Lost(int neighbour) {
  Detach(neighbour);
  if (verdict_.ok() && !HasLeft(neighbour)) {
    // One text for all kinds of ends, so that all ranks that detect it report the same.
    const absl::Status gone = absl::UnavailableError(
        absl::StrCat(Describe(neighbour), " is gone: its connection was closed"));
    // A rank with no rank above ignores earlier reports: all that have lost the same peer judge
    // alike.
    if (up_.empty()) {
      Judge(gone);
    } else {
      Report(gone);
    }
  }
  // After the verdict on it, or on what it has reported itself.
  if (!everybody_left_ && AreNeighbours(rank_, neighbour)) {
    SpreadGone({neighbour, Describe(neighbour)});
  }
  // The lost rank may not have forwarded that all below this rank have left.
  if (neighbour == Parent(rank_) || neighbour == Guardian(rank_)) said_done_ = false;
  SayDone();
}

void Node::SpreadGone(Gone gone) {
  const auto same = [&gone](const Gone& known) { return known.rank == gone.rank; };
  if (gone.rank == rank_ || std::any_of(gone_.begin(), gone_.end(), same)) return;
  SendAll(up_, FrameKind::kGone, EncodeGone(gone));
  SendAll(down_, FrameKind::kGone, EncodeGone(gone));
  // If it did not leave but failed, the verdict ends the inquiry.
  inquiry_.Left(gone.rank);
  gone_.push_back(std::move(gone));
}

void Node::ReceiveGone(int from, absl::string_view payload) {
  absl::StatusOr<Gone> gone = ParseGone(payload, world_size_);
  if (!gone.ok()) {
    Nonsense(from, gone.status().message());
    return;
  }
  SpreadGone(*std::move(gone));
}

// ---- Location ----

void Node::Locate(int rank) {
  if (const std::optional<int> next = NextTo(rank); next.has_value()) {
    Send(*next, FrameKind::kLocate, EncodeLocation({rank_, rank, ""}));
  }
}

// The neighbour that is nearest to another rank; past one that has left. Nothing when the way is
// broken, for which the job's verdict comes.
std::optional<int> Node::NextTo(int rank) const {
  if (!IsAbove(rank_, rank)) {
    for (const std::optional<int> above : {Parent(rank_), Guardian(rank_)}) {
      if (above.has_value() && Has(up_, *above)) return above;
    }
    return std::nullopt;
  }
  // Down the path to `rank`: through the child, or if its connection is lost, through the
  // grandchild on the path.
  std::optional<int> child = rank;
  std::optional<int> grandchild;
  while (Parent(*child) != rank_) grandchild = std::exchange(child, Parent(*child));
  if (Has(down_, *child)) return child;
  return grandchild.has_value() && Has(down_, *grandchild) ? grandchild : std::nullopt;
}

void Node::ReceiveLocation(int from, FrameKind kind, const std::string& payload) {
  absl::StatusOr<Location> location = ParseLocation(payload, world_size_);
  if (!location.ok()) {
    Nonsense(from, location.status().message());
    return;
  }
  if (kind == FrameKind::kLocate && location->rank == rank_) {
    kind = FrameKind::kLocated;
    location->place = place_;
  }
  const int to = kind == FrameKind::kLocate ? location->rank : location->asker;
  if (to == rank_) {
    located_[location->rank] = std::move(location->place);
  } else if (const std::optional<int> next = NextTo(to); next.has_value()) {
    Send(*next, kind, EncodeLocation(*location));
  }
}

// ---- Goodbye ----

void Node::Goodbye() {
  if (leaving_) return;
  leaving_ = true;
  SendAll(up_, FrameKind::kBye, "");
  SendAll(down_, FrameKind::kBye, "");
  SayDone();
}

bool Node::HasLeft(int neighbour) const {
  if (everybody_left_ || said_bye_.count(neighbour) > 0) return true;
  // Its own report is lost if its connection was; but its parent has passed it on.
  const std::optional<int> parent = Parent(neighbour);
  return parent.has_value() && said_done_below_.count(*parent) > 0;
}

bool Node::AllBelowSaidGoodbye() const {
  const auto done = [this](int rank) { return said_done_below_.count(rank) > 0; };
  const auto gone = [this](int rank) { return said_bye_.count(rank) > 0 && !Has(down_, rank); };
  return std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
    if (done(child.rank)) return true;
    // It has left before its children, and they are this rank's now.
    if (!gone(child.rank)) return false;
    const std::vector<int> orphans = Children(child.rank, world_size_);
    // Ranks below an orphan that has left are cut off: they cannot notify any rank above.
    return std::all_of(orphans.begin(), orphans.end(),
                       [&](int rank) { return done(rank) || gone(rank); });
  });
}

void Node::SayDone() {
  if (!leaving_ || said_done_ || everybody_left_ || !AllBelowSaidGoodbye()) return;
  said_done_ = true;
  // Ancestors that have already left neither wait nor forward messages.
  if (up_.empty()) {
    everybody_left_ = true;
    SendAll(down_, FrameKind::kDone, "");
    return;
  }
  for (const std::optional<int>& above : {Parent(rank_), Guardian(rank_)}) {
    if (!above.has_value() || !Has(up_, *above)) continue;
    Send(*above, FrameKind::kDone, "");
    return;
  }
}

void Node::ReceiveDone(int from) {
  if (!Has(up_, from)) {
    said_done_below_.insert(from);
    SayDone();
    return;
  }
  if (everybody_left_) return;
  everybody_left_ = true;
  SendAll(down_, FrameKind::kDone, "");
}

void Node::Receive(int from, FrameKind kind, const std::string& payload) {
  switch (kind) {
    case FrameKind::kGather:
      ReceiveGather(from, payload);
      break;
    case FrameKind::kAll:
      ReceiveAll(from, payload);
      break;
    case FrameKind::kAsk:
      ReceiveAsk(from);
      break;
    case FrameKind::kMissing:
      ReceiveMissing(from, payload);
      break;
    case FrameKind::kFail:
      if (everybody_left_) break;
      if (Has(up_, from)) {
        Judge(ParseFailure(payload));
      } else {
        Report(ParseFailure(payload));
      }
      break;
    case FrameKind::kLocate:
    case FrameKind::kLocated:
      ReceiveLocation(from, kind, payload);
      break;
    case FrameKind::kGone:
      ReceiveGone(from, payload);
      break;
    case FrameKind::kBye:
      said_bye_.insert(from);
      break;
    case FrameKind::kDone:
      ReceiveDone(from);
      break;
    case FrameKind::kCall:
    case FrameKind::kQuestion:
    case FrameKind::kTestimony:
    case FrameKind::kReport:
      if (const absl::Status status = inquiry_.Receive(from, kind, payload); !status.ok()) {
        Nonsense(from, status.message());
      }
      break;
    default:
      Nonsense(from, "an unexpected kind of frame");
  }
}

}  // namespace railhead::bootstrap
