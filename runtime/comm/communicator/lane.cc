// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/lane.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/caught.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/call.h"
#include "runtime/net/socket.h"

namespace railhead::comm {
namespace {

// Interval of checks for ranks that have left, and for transfers without progress.
constexpr absl::Duration kLook = absl::Seconds(1);
// Maximum number of consecutive short waits (within a spin) before the clock is read.
constexpr uint32_t kMostAtOnce = 1024;
// Maximum time that the progress thread works for one lane at a time.
constexpr absl::Duration kLongestWork = absl::Milliseconds(20);
constexpr int kLooks = 48;  // at least, in a timeout
// If two ranks cannot connect, one that does not know the cause lets the other fail first: it waits
// for another timeout / kGraces, in which a query shows both that they are stuck.
constexpr int kGraces = 6;  // in a timeout

// Returns the rank with which a transfer is; kAny if a receive from any rank matches none yet.
int PeerOf(const transfers::Transfer& transfer) {
  return transfer.peer != transfers::kAny ? transfer.peer : transfer.outcome.peer;
}

}  // namespace

void LaneTransfer::Wait() {
  if (!IsDone()) lane_->WaitFor(*this);
}

bool LaneTransfer::Test() {
  if (!IsDone()) lane_->Help();
  return IsDone();
}

absl::StatusOr<std::shared_ptr<Lane>> Lane::Start(Options options) {
  std::shared_ptr<Lane> lane(new Lane(std::move(options)));
  const Options& set = lane->options_;
  absl::StatusOr<std::unique_ptr<LaneMessenger>> messages =
      LaneMessenger::Create(set.rank, set.alarm, set.reach, set.memory, set.here, set.crowded);
  if (!messages.ok()) return messages.status();
  lane->messages_ = *std::move(messages);
  LaneMessenger& messenger = *lane->messages_;
  messenger.Expect(collectives::Call({.collective = collectives::Collective::kSendReceive}));
  transfers::Engine::Options engine;
  engine.rank = set.rank;
  engine.name = set.name;
  engine.done = [raw = lane.get()](transfers::Transfer& transfer) {
    raw->CountGoing(-1);
    raw->any_done_ = true;
    static_cast<LaneTransfer&>(transfer).End(absl::OkStatus());
  };
  engine.greets = [&messenger](int peer) { return !messenger.InMemory(peer); };
  lane->engine_ = std::make_unique<transfers::Engine>(messenger, std::move(engine));
  for (const int peer : set.here) lane->engine_->Listen(peer);
  absl::StatusOr<std::shared_ptr<net::WatchThread>> thread =
      net::WatchThread::Get(net::WatchThread::Work::kProgress);
  if (!thread.ok()) return thread.status();
  lane->thread_ = *std::move(thread);
  if (absl::Status watched = lane->WatchOnce(EPOLL_CTL_ADD); !watched.ok()) return watched;
  lane->thread_->Wake(*lane);
  return lane;
}

Lane::Lane(Options options)
    : options_(std::move(options)),
      look_pause_(std::min(kLook, options_.timeout / kLooks)),
      still_(options_.timeout) {}

void Lane::Close() {
  closing_.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_->Ring();
  }
  // No other thread gets the lock after this one.
  lock_.LockUnless([] { return false; });
  thread_->Wake(*this);
  thread_->AwaitEnd(*this);
  if (aside_.joinable()) aside_.join();
  // After an abort, transfers end with the abort status.
  if (!ended_.has_value()) End(options_.alarm.Check());
  engine_.reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  messages_.reset();
}

absl::Status Lane::Post(LaneTransfer& transfer) {
  if (lock_.TryLock()) {
    if (ended_.has_value()) {
      absl::Status why = *ended_;
      lock_.Unlock();
      return why;
    }
    // Transfers that this thread posted before come first.
    if (any_posted_.load(std::memory_order_relaxed)) TakePosted();
    CountGoing(1);
    // The caller does not free the transfer before this function returns.
    absl::Status status = Caught(
        [&] {
          const bool waits = engine_->Post(transfer);
          if (!transfer.IsDone()) transfer.Belongs(shared_from_this());
          return waits && IsQuick(transfer) ? absl::OkStatus() : AdvanceOnce();
        },
        [](const absl::Status& why) { return why; });
    if (!status.ok()) End(status);
    Leave();
    return absl::OkStatus();
  }
  transfer.Belongs(shared_from_this());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.has_value()) return *ended_;
    posted_.push_back(&transfer);
    any_posted_.store(true, std::memory_order_seq_cst);
    messages_->Ring();
  }
  // The thread that had the lock may have left before it could see the transfer.
  Help();
  return absl::OkStatus();
}

bool Lane::IsQuick(const LaneTransfer& transfer) const {
  if (transfer.peer != transfers::kAny && messages_->InMemory(transfer.peer)) {
    return transfer.size <= transfers::kMostEagerInMemory;
  }
  return transfer.size <= transfers::kMostEager;
}

void Lane::WaitFor(const LaneTransfer& transfer) {
  const auto done = [&transfer] { return transfer.IsDone(); };
  while (!done()) {
    if (lock_.LockUnless(done)) Drive(done);
    // Close is about to end the transfer.
    if (closing_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
}

void Lane::Help() {
  if (!lock_.TryLock()) return;
  if (!ended_.has_value()) {
    if (absl::Status status = AdvanceOnce(); !status.ok()) End(status);
  }
  Leave();
}

void Lane::Settle(absl::Time deadline) {
  if (!lock_.LockUnless([] { return false; }, deadline)) return;
  // This rank leaves, and other ranks may have done so.
  messages_->mesh().ExpectClose();
  Drive([this] { return IsSettled(); }, deadline);
}

template <class Done>
void Lane::Drive(Done done, absl::Time deadline) {
  while (!ended_.has_value() && !closing_.load(std::memory_order_relaxed)) {
    absl::Status status = Advance();
    if (status.ok() && done()) break;
    if (deadline != absl::InfiniteFuture() && MonotonicNow() >= deadline) break;
    if (status.ok()) status = Work(deadline);
    if (!status.ok()) End(status);
  }
  Leave();
}

absl::Status Lane::Advance() {
  if (any_posted_.load(std::memory_order_relaxed)) TakePosted();
  if (messages_->HasOpened()) {
    for (const int peer : messages_->TakeOpened()) engine_->Listen(peer);
  }
  return engine_->Advance();
}

void Lane::TellDone() {
  if (std::exchange(any_done_, false)) lock_.WakeWaiters();
}

absl::Status Lane::AdvanceOnce() {
  if (absl::Status status = Advance(); !status.ok()) return status;
  const absl::StatusOr<bool> moved = messages_->Look();
  if (!moved.ok() || !*moved) return moved.status();
  return Advance();
}

void Lane::Leave() {
  ++visits_;
  any_done_ = false;  // unlocking wakes the waiters
  while (true) {
    const Attention attention = attention_.load(std::memory_order_relaxed);
    // In memory, ranks ring: what the progress thread has armed stays so.
    if (attention == Attention::kMissed ||
        (attention == Attention::kAsleep && messages_->mesh().HasPeers())) {
      attention_.store(Attention::kSoon, std::memory_order_relaxed);
      thread_->Wake(*this, MonotonicNow() + kPause);
    }
    lock_.Unlock();
    // Transfers posted since then by threads that did not get the lock.
    if (!any_posted_.load(std::memory_order_seq_cst) || !lock_.TryLock()) return;
    if (absl::Status status = AdvanceOnce(); !status.ok()) End(status);
  }
}

void Lane::TakePosted() {
  std::vector<LaneTransfer*> posted;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted.swap(posted_);
    CountGoing(static_cast<ptrdiff_t>(posted.size()));
    any_posted_.store(false, std::memory_order_relaxed);
  }
  for (LaneTransfer* const transfer : posted) engine_->Post(*transfer);
}

size_t Lane::unfinished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return going_.load(std::memory_order_relaxed) + posted_.size();
}

absl::Status Lane::Work(absl::Time deadline) {
  TellDone();
  absl::Duration longest = look_pause_;
  if (deadline != absl::InfiniteFuture()) longest = std::min(longest, deadline - MonotonicNow());
  const absl::StatusOr<LaneMessenger::Came> came = messages_->Wait(longest);
  if (!came.ok()) return came.status();
  if (*came == LaneMessenger::Came::kAtOnce && ++at_once_ < kMostAtOnce) return absl::OkStatus();
  at_once_ = 0;
  const absl::Time now = MonotonicNow();
  if (*came != LaneMessenger::Came::kNothing && now - looked_ < look_pause_) {
    return absl::OkStatus();
  }
  looked_ = now;
  return LookAround(now);
}

std::optional<absl::Time> Lane::Turn() {
  if (closing_.load(std::memory_order_relaxed)) return std::nullopt;
  const absl::Time now = MonotonicNow();
  if (!lock_.TryLock()) {
    attention_.store(Attention::kMissed, std::memory_order_relaxed);
    return now + kLongestPause;
  }
  if (ended_.has_value()) {
    lock_.Unlock();
    return absl::InfiniteFuture();
  }
  attention_.store(Attention::kSoon, std::memory_order_relaxed);
  const absl::StatusOr<absl::Time> again = Attend(now);
  if (!again.ok()) {
    EndAside(again.status());
    return absl::InfiniteFuture();
  }
  lock_.Unlock();
  return *again;
}

absl::StatusOr<absl::Time> Lane::Attend(absl::Time now) {
  messages_->mesh().Begin(absl::InfiniteDuration());
  bool moved = true;
  while (moved && !lock_.wanted() && MonotonicNow() - now < kLongestWork) {
    if (absl::Status status = Advance(); !status.ok()) return status;
    TellDone();
    const absl::StatusOr<bool> looked = messages_->Look();
    if (!looked.ok()) return looked.status();
    moved = *looked;
  }
  // Processes what the last Look() received.
  if (absl::Status status = Advance(); !status.ok()) return status;
  if (moved || lock_.wanted()) return now;
  if (now - looked_ >= look_pause_) {
    looked_ = now;
    if (absl::Status status = LookAround(now); !status.ok()) return status;
  }
  if (std::exchange(seen_visits_, visits_) != visits_) return now + kPause;
  return Sleep(now);
}

absl::StatusOr<absl::Time> Lane::Sleep(absl::Time now) {
  const absl::StatusOr<absl::Duration> longest = messages_->PrepareSleep();
  if (!longest.ok()) return longest.status();
  if (*longest == absl::ZeroDuration()) return now;
  if (absl::Status watched = WatchOnce(EPOLL_CTL_MOD); !watched.ok()) return watched;
  attention_.store(Attention::kAsleep, std::memory_order_relaxed);
  return now + std::min(*longest, look_pause_);
}

absl::Status Lane::WatchOnce(int operation) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.ptr = static_cast<net::WatchThread::Client*>(this);
  if (::epoll_ctl(thread_->epoll(), operation, messages_->mesh().epoll(), &event) == 0) {
    return absl::OkStatus();
  }
  return net::ErrnoError("epoll_ctl", errno);
}

void Lane::EndAside(const absl::Status& status) {
  const auto end = [this, status] {
    End(status);
    lock_.Unlock();
  };
  absl::StatusOr<std::thread> started = TryStartThread(end);
  if (!started.ok()) {
    end();
    return;
  }
  aside_ = *std::move(started);
}

bool Lane::IsSettled() const {
  const auto left = [this](int rank) { return options_.left(rank).has_value(); };
  return engine_->Flushed(left) && messages_->mesh().Acknowledged(left);
}

void Lane::NoteProgress(absl::Time now) {
  // Transfers with one peer wait for each other, but not for those with other peers. For receives
  // that match nothing yet (kAny), and for transfers to this rank itself, progress means that the
  // oldest one has changed.
  std::map<int, recorder::TransferStillness::Peer> peers;
  for (const transfers::Transfer* transfer = engine_->oldest(); transfer != nullptr;
       transfer = transfer->going.next) {
    const auto [peer, first] = peers.try_emplace(PeerOf(*transfer));
    if (first) peer->second.progress = transfer->going.number;
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
  for (const transfers::Transfer* transfer = engine_->oldest(); transfer != nullptr;
       transfer = transfer->going.next) {
    if (std::find(peers.begin(), peers.end(), PeerOf(*transfer)) == peers.end()) continue;
    if (count++ == 0) first = transfer;
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
  std::vector<transfers::Transfer*> unfinished = engine_->TakeUnfinished();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = why;
    unfinished.insert(unfinished.end(), posted_.begin(), posted_.end());
    posted_.clear();
    any_posted_.store(false, std::memory_order_relaxed);
    going_.store(0, std::memory_order_relaxed);
  }
  for (transfers::Transfer* const transfer : unfinished) {
    static_cast<LaneTransfer&>(*transfer).End(why);
  }
  lock_.WakeWaiters();
}

}  // namespace railhead::comm
