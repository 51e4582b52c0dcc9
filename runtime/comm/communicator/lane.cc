// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/lane.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/call.h"

namespace railhead::comm {
namespace {

// Interval of checks for ranks that have left.
constexpr absl::Duration kLook = absl::Seconds(1);

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
  last_moved_ = MonotonicNow();
  for (const int peer : options_.here) engine_->Listen(peer);
  absl::Status status;
  while (status.ok()) {
    TakePosted();
    for (const int peer : messages_->TakeOpened()) engine_->Listen(peer);
    status = engine_->Advance();
    if (!status.ok()) break;
    {
      const bool settled = engine_->Flushed() && messages_->mesh().Acknowledged();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) {
        // After an abort, transfers end with the abort status.
        status = options_.alarm.Check();
        break;
      }
      if (settling_ && settled && posted_.empty()) {
        settled_ = true;
        changed_.NotifyAll();
        // Other ranks leave once this one has.
        messages_->mesh().ExpectClose();
      }
    }
    status = Work();
  }
  End(status);
}

absl::Status Lane::Work() {
  messages_->mesh().Begin(std::min(kLook, options_.timeout / 4));
  absl::Status moved = messages_->Progress();
  const absl::Time now = MonotonicNow();
  if (absl::IsDeadlineExceeded(moved)) return LookAround(now);
  if (!moved.ok()) return moved;
  last_moved_ = now;
  // Other transfers do not hide that a peer has left.
  if (now - looked_ < kLook) return moved;
  looked_ = now;
  return WhyStillInVain();
}

absl::Status Lane::WhyStillInVain() {
  std::map<int, absl::Status> by_peer;
  std::set<uint64_t> in_vain;
  absl::Status why;
  for (const auto& [number, transfer] : engine_->unfinished()) {
    const auto known = by_peer.find(transfer->peer);
    const absl::Status& found =
        known != by_peer.end()
            ? known->second
            : by_peer.emplace(transfer->peer, WhyInVain(transfer->peer)).first->second;
    if (found.ok()) continue;
    in_vain.insert(number);
    // What a peer sent before it left may not have been taken yet at the first time.
    if (in_vain_.contains(number)) why.Update(found);
  }
  in_vain_ = std::move(in_vain);
  return why;
}

absl::Status Lane::LookAround(absl::Time now) {
  const auto& unfinished = engine_->unfinished();
  if (unfinished.empty()) {
    last_moved_ = now;
    return absl::OkStatus();
  }
  std::set<int> peers;
  for (const auto& [number, transfer] : unfinished) peers.insert(transfer->peer);
  for (const int peer : peers) {
    if (absl::Status in_vain = WhyInVain(peer); !in_vain.ok()) return in_vain;
  }
  if (now - last_moved_ < options_.timeout) return absl::OkStatus();
  std::vector<int> stalled;
  for (const int peer : engine_->UnderWay()) {
    if (!options_.left(peer).has_value()) stalled.push_back(peer);
  }
  if (!stalled.empty() || !options_.all_answer()) return Late(stalled);
  // All ranks are alive, and have not reached these transfers yet.
  last_moved_ = MonotonicNow();
  return absl::OkStatus();
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
      DescribeOldest(), ")"));
}

absl::Status Lane::Late(const std::vector<int>& ranks) const {
  std::string text = absl::StrCat("nothing has moved for ", absl::FormatDuration(options_.timeout));
  if (!ranks.empty()) {
    absl::StrAppend(&text, " between this rank and ",
                    absl::StrJoin(ranks, ", ", [this](std::string* out, int rank) {
                      absl::StrAppend(out, options_.name(rank));
                    }));
  }
  return absl::DeadlineExceededError(absl::StrCat(text, " (", DescribeOldest(), ")"));
}

std::string Lane::DescribeOldest() const {
  const auto& unfinished = engine_->unfinished();
  if (unfinished.empty()) return "no transfer is unfinished";
  const transfers::Transfer& oldest = *unfinished.begin()->second;
  const bool sends = oldest.direction == transfers::Direction::kSend;
  return absl::StrCat(
      unfinished.size(), " transfers are unfinished, the oldest ", sends ? "a send" : "a receive",
      " of ", sends ? "" : "at most ", oldest.size, " bytes ", sends ? "to " : "from ",
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
