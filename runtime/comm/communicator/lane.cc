// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/lane.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/call.h"

namespace railhead::comm {
namespace {

// Interval of checks for ranks that have left, and for transfers without progress.
constexpr absl::Duration kLook = absl::Seconds(1);
constexpr int kLooks = 48;  // at least, in a timeout
// Of two ranks that cannot connect, one that does not know why lets the other one speak first: so
// long after the timeout, in which both learn of it by a query.
constexpr int kGraces = 6;  // in a timeout

// Returns the rank with which a transfer is; kAny if a receive from any rank matches none yet.
int PeerOf(const transfers::Transfer& transfer) {
  return transfer.peer != transfers::kAny ? transfer.peer : transfer.outcome.peer;
}

}  // namespace

pid_t LaneTransfer::ThisProcess() { return ::getpid(); }

bool LaneTransfer::IsForeign() const { return ::getpid() != process_; }

void LaneTransfer::Wait() {
  if (IsDone()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait(lock, [this] { return IsDone(); });
}

void LaneTransfer::End(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = status;
  done_.store(true, std::memory_order_release);
  ended_.notify_all();
}

absl::StatusOr<std::unique_ptr<Lane>> Lane::Start(Options options) {
  std::unique_ptr<Lane> lane(new Lane(std::move(options)));
  const Options& set = lane->options_;
  absl::StatusOr<std::unique_ptr<LaneMessenger>> messages =
      LaneMessenger::Create(set.rank, set.alarm, set.reach, set.memory, set.here);
  if (!messages.ok()) return messages.status();
  lane->messages_ = *std::move(messages);
  LaneMessenger& messenger = *lane->messages_;
  messenger.Expect(collectives::Call({.collective = collectives::Collective::kSendReceive}));
  transfers::Engine::Options engine;
  engine.rank = set.rank;
  engine.name = set.name;
  engine.done = [raw = lane.get()](const std::shared_ptr<transfers::Transfer>& transfer) {
    {
      const std::lock_guard<std::mutex> lock(raw->mutex_);
      --raw->unfinished_;
    }
    static_cast<LaneTransfer&>(*transfer).End(absl::OkStatus());
  };
  engine.greets = [&messenger](int peer) { return !messenger.InMemory(peer); };
  lane->engine_ = std::make_unique<transfers::Engine>(messenger, std::move(engine));
  absl::StatusOr<std::thread> thread = TryStartThread([raw = lane.get()] { raw->Run(); });
  if (!thread.ok()) return thread.status();
  lane->thread_ = *std::move(thread);
  return lane;
}

Lane::~Lane() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  if (!thread_.joinable()) return;
  messages_->Ring();
  thread_.join();
}

absl::Status Lane::Post(std::shared_ptr<LaneTransfer> transfer) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.has_value()) return *ended_;
    posted_.push_back(std::move(transfer));
    ++unfinished_;
    settled_ = false;
  }
  messages_->Ring();
  return absl::OkStatus();
}

size_t Lane::unfinished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return unfinished_;
}

void Lane::Settle(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  settling_ = true;
  settled_ = false;
  lock.unlock();
  messages_->Ring();
  lock.lock();
  changed_.WaitUntil(lock, deadline, [this] { return settled_ || ended_.has_value(); });
}

void Lane::TakePosted() {
  std::vector<std::shared_ptr<LaneTransfer>> posted;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& transfer : posted) engine_->Post(transfer);
}

void Lane::Run() {
  for (const int peer : options_.here) engine_->Listen(peer);
  absl::Status status;
  while (status.ok()) {
    TakePosted();
    for (const int peer : messages_->TakeOpened()) engine_->Listen(peer);
    status = engine_->Advance();
    if (!status.ok()) break;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) {
        // After an abort, transfers end with the abort status.
        status = options_.alarm.Check();
        break;
      }
      // This rank leaves, and other ranks may have done so.
      if (settling_) messages_->mesh().ExpectClose();
      if (settling_ && posted_.empty() && IsSettled()) {
        settled_ = true;
        changed_.NotifyAll();
      }
    }
    status = Work();
  }
  End(status);
}

bool Lane::IsSettled() const {
  const auto left = [this](int rank) { return options_.left(rank).has_value(); };
  return engine_->Flushed(left) && messages_->mesh().Acknowledged(left);
}

absl::Status Lane::Work() {
  const absl::Duration pause = std::min(kLook, options_.timeout / kLooks);
  messages_->mesh().Begin(pause);
  absl::Status moved = messages_->Progress();
  const bool nothing = absl::IsDeadlineExceeded(moved);
  if (!moved.ok() && !nothing) return moved;
  const absl::Time now = MonotonicNow();
  if (!nothing && now - looked_ < pause) return absl::OkStatus();
  looked_ = now;
  return LookAround(now);
}

void Lane::NoteProgress(absl::Time now) {
  // Transfers with a peer wait for each other, but not for those with other peers. Of receives that
  // match nothing yet (kAny), and of transfers to this rank itself, progress is that the oldest is
  // another one.
  std::map<int, recorder::TransferStillness::Peer> peers;
  for (const auto& [number, transfer] : engine_->unfinished()) {
    const auto [peer, first] = peers.try_emplace(PeerOf(*transfer));
    if (first) peer->second.progress = number;
    peer->second.unfinished = true;
  }
  for (const int peer : engine_->UnderWay()) peers[peer].under_way = true;
  // A small message is done once it is copied.
  for (const int peer : messages_->mesh().Unacknowledged()) peers[peer].under_way = true;
  for (auto& [peer, state] : peers) {
    const bool other = peer != transfers::kAny && peer != options_.rank;
    if (other) state.progress = messages_->progress(peer);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  still_.Look(now, peers);
}

recorder::StillTransfers Lane::Still(absl::Time now, uint32_t query) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return still_.At(now, options_.rank, query);
}

absl::Status Lane::LookAround(absl::Time now) {
  NoteProgress(now);
  // A peer may have left after it sent something that has not been received yet.
  for (const int peer : still_.Unfinished(now, absl::Nanoseconds(1))) {
    if (absl::Status in_vain = WhyInVain(peer); !in_vain.ok()) return in_vain;
  }
  const std::vector<int> late = still_.Unfinished(now, options_.timeout);
  const std::vector<int> long_late =
      still_.UnderWay(now, options_.timeout + options_.timeout / kGraces);
  const std::vector<int> stuck = options_.stuck_with();
  const auto has = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  std::vector<int> stalled;
  for (const int peer : still_.UnderWay(now, options_.timeout)) {
    const bool posted = engine_->Heard(peer) && has(late, peer);
    const bool speaks = messages_->mesh().CannotConnect(peer) || has(long_late, peer);
    if (posted || (speaks && has(stuck, peer))) stalled.push_back(peer);
  }
  return stalled.empty() ? absl::OkStatus() : Late(stalled);
}

absl::Status Lane::WhyInVain(int peer) const {
  const bool any = peer == transfers::kAny;
  if (peer == options_.rank || (any && options_.world_size == 1)) return absl::OkStatus();
  std::optional<std::string> name;
  for (int rank = any ? 0 : peer; rank < (any ? options_.world_size : peer + 1); ++rank) {
    if (rank == options_.rank) continue;
    name = options_.left(rank);
    if (!name.has_value()) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      any ? "every other rank" : *name, " has left the communicator, and this rank waits for it (",
      DescribeOldest({peer}), ")"));
}

absl::Status Lane::Late(const std::vector<int>& peers) const {
  std::string text = absl::StrCat("nothing has moved for ", absl::FormatDuration(options_.timeout),
                                  " between this rank and ",
                                  absl::StrJoin(peers, ", ", [this](std::string* out, int rank) {
                                    absl::StrAppend(out, options_.name(rank));
                                  }));
  absl::StrAppend(&text, " (", DescribeOldest(peers));
  for (const int peer : peers) {
    const std::string rails = messages_->mesh().DescribeProgress(peer);
    if (!rails.empty()) absl::StrAppend(&text, "; ", rails);
  }
  return absl::DeadlineExceededError(absl::StrCat(text, ")"));
}

std::string Lane::DescribeOldest(const std::vector<int>& peers) const {
  size_t count = 0;
  const transfers::Transfer* first = nullptr;
  for (const auto& [number, transfer] : engine_->unfinished()) {
    if (std::find(peers.begin(), peers.end(), PeerOf(*transfer)) == peers.end()) continue;
    if (count++ == 0) first = transfer.get();
  }
  if (first == nullptr) return "no transfer is unfinished";
  const transfers::Transfer& oldest = *first;
  const bool sends = oldest.direction == transfers::Direction::kSend;
  return absl::StrCat(
      count, " transfers are unfinished, the oldest ", sends ? "a send" : "a receive", " of ",
      sends ? "" : "at most ", oldest.size, " bytes ", sends ? "to " : "from ",
      oldest.peer == transfers::kAny ? "any rank" : absl::StrCat("rank ", oldest.peer), " with ",
      oldest.tag == transfers::kAny ? "any tag" : absl::StrCat("tag ", oldest.tag));
}

void Lane::End(const absl::Status& status) {
  absl::Status why = status;
  if (!why.ok()) {
    why = options_.fail(why);
  } else {
    why = absl::CancelledError("the communicator was destroyed before the transfer was done");
  }
  std::vector<std::shared_ptr<LaneTransfer>> unfinished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = why;
    for (const auto& [number, transfer] : engine_->unfinished()) {
      unfinished.push_back(std::static_pointer_cast<LaneTransfer>(transfer));
    }
    unfinished.insert(unfinished.end(), posted_.begin(), posted_.end());
    posted_.clear();
    unfinished_ = 0;
  }
  changed_.NotifyAll();
  for (const auto& transfer : unfinished) transfer->End(why);
}

}  // namespace railhead::comm
