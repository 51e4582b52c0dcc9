// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/mesh.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/rank_causes.h"
#include "runtime/net/socket.h"

namespace railhead::rails {
namespace {

// As long as a wake-up from sleep costs: spinning longer cannot win more.
constexpr absl::Duration kSpin = absl::Microseconds(50);
// Interval of polling some peers in turn, busy or not. A rail with frames in flight may die, and a
// dead one may return, without an event on any descriptor.
constexpr absl::Duration kRoundPause = absl::Milliseconds(20);
// Maximum number of peers per round whose polling costs system calls; the next round continues with
// the next ones. Bounds the time of a round of a rank with a thousand peers.
constexpr size_t kMostInRound = 32;
// Sleep between polls if some link cannot wake the mesh.
constexpr int kPollingSleepMs = 1;
// A link detects a peer that has stopped responding only when it is polled.
constexpr int kLongestSleepMs = 1000;
constexpr int kRestlessSleepMs = 20;
// Maximum time that a tender works for one mesh at a time: it may have others.
constexpr absl::Duration kLongestTending = absl::Milliseconds(20);
// Peers that the message of a timeout describes; it names the others.
constexpr size_t kMostDescribed = 4;
// A rail's backlog shrinks without an event on its descriptor.
constexpr int kHeldBackSleepMs = 2;

Traffic TrafficOf(const Peer& peer) {
  Traffic moved;
  for (size_t i = 0; i < peer.rail_count(); ++i) moved += peer.rail_traffic(i);
  return moved;
}

RailTotals TotalsOf(const Peer& peer, size_t rail) {
  const transport::LinkStats& stats = peer.rail_stats(rail);
  const RailHealth& health = peer.rail_health(rail);
  RailTotals totals;
  totals.name = peer.rail_name(rail);
  totals.up = !health.lost.load(std::memory_order_relaxed);
  totals.peers = 1;
  totals.lost_peers = totals.up ? 0 : 1;
  totals.failovers = health.failovers.load(std::memory_order_relaxed);
  totals.returns = health.returns.load(std::memory_order_relaxed);
  totals.strangers = stats.strangers.load(std::memory_order_relaxed);
  totals.transmit_bytes = stats.transmit_bytes.load(std::memory_order_relaxed);
  totals.receive_bytes = stats.receive_bytes.load(std::memory_order_relaxed);
  totals.retransmits = stats.retransmits.load(std::memory_order_relaxed);
  return totals;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Mesh>> Mesh::Create(std::map<int, std::unique_ptr<Peer>> peers,
                                                   Alarm alarm, Reach reach) {
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(peers), alarm, std::move(reach)));
  absl::Status watched;
  if (transport::WakeEvent* const wake = mesh->reach_.wake.get(); wake != nullptr) {
    watched.Update(mesh->OpenEpoll());
    if (watched.ok()) {
      watched.Update(
          wake->WakeBy(mesh->epoll_.get(), &mesh->sources_.emplace_back(Source{wake, nullptr})));
    }
  }
  for (auto& [rank, entry] : mesh->peers_) {
    watched.Update(mesh->Watch(entry));
    mesh->MakeBusy(entry);
  }
  if (!watched.ok()) return watched;
  return mesh;
}

Mesh::Mesh(std::map<int, std::unique_ptr<Peer>> peers, Alarm alarm, Reach reach)
    : alarm_(alarm), reach_(std::move(reach)) {
  for (auto& [rank, peer] : peers) peers_[rank].peer = std::move(peer);
}

Mesh::~Mesh() {
  if (reach_.wake != nullptr) reach_.wake->WakeBy(-1, nullptr).IgnoreError();
}

absl::Status Mesh::Accompany(Companion& companion) {
  companion_ = &companion;
  return WatchCompanion();
}

absl::Status Mesh::WatchCompanion() {
  if (watches_companion_ || companion_->event_fd() < 0) return absl::OkStatus();
  absl::Status watched = Watch(companion_->event_fd(), {});
  watches_companion_ = watched.ok();
  return watched;
}

bool Mesh::MustPollCompanion() {
  // A process without free descriptors may have some at the next sleep.
  return CompanionWaits() && !(companion_->Arm().ok() && WatchCompanion().ok());
}

absl::Status Mesh::Watch(Entry& entry) {
  for (size_t i = 0; i < entry.peer->rail_count(); ++i) {
    transport::Link& link = entry.peer->link(i);
    entry.in_memory = entry.in_memory && link.polls_in_memory();
    if (absl::Status opened = OpenEpoll(); !opened.ok()) return opened;
    const absl::StatusOr<bool> wakes =
        link.WakeBy(epoll_.get(), &sources_.emplace_back(Source{nullptr, &entry, i}));
    if (!wakes.ok()) return wakes.status();
    must_poll_ = must_poll_ || !*wakes;
  }
  return absl::OkStatus();
}

absl::Status Mesh::OpenEpoll() {
  if (!epoll_.valid()) epoll_ = net::Fd(::epoll_create1(EPOLL_CLOEXEC));
  return epoll_.valid() ? absl::OkStatus() : net::ErrnoError("epoll_create1", errno);
}

absl::Status Mesh::Watch(int fd, const Source& source) {
  if (absl::Status opened = OpenEpoll(); !opened.ok()) return opened;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &sources_.emplace_back(source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

void Mesh::MakeBusy(Entry& entry) {
  if (std::exchange(entry.busy, true)) return;
  busy_.push_back(&entry);
  progress_of_idle_ -= entry.peer->progress();
  moved_of_idle_ = moved_of_idle_ - std::exchange(entry.counted, Traffic());
}

void Mesh::SweepBusy() {
  for (Entry* entry : busy_) {
    entry->busy = !entry->peer->Quiet();
    if (entry->busy) continue;
    progress_of_idle_ += entry->peer->progress();
    entry->counted = TrafficOf(*entry->peer);
    moved_of_idle_ += entry->counted;
  }
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(), [](Entry* entry) { return !entry->busy; }),
              busy_.end());
}

Mesh::Entry* Mesh::To(int rank) {
  if (const auto found = peers_.find(rank); found != peers_.end()) {
    found->second.peer->Expect(call_);
    MakeBusy(found->second);
    return &found->second;
  }
  absl::StatusOr<std::unique_ptr<Peer>> opened =
      reach_.open != nullptr
          ? reach_.open(rank)
          : absl::UnimplementedError(absl::StrCat("rank ", rank, " is not connected"));
  broken_.Update(opened.status());
  if (!opened.ok()) return nullptr;
  (*opened)->Expect(call_);
  (*opened)->CopySmall(copies_small_);
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = peers_[rank];
  entry.peer = *std::move(opened);
  broken_.Update(Watch(entry));
  MakeBusy(entry);
  return &entry;
}

class Mesh::Visit {
 public:
  explicit Visit(Mesh& mesh)
      : mesh_(mesh), was_away_(mesh.holder_.load(std::memory_order_relaxed) != Holder::kOwner) {
    mesh.Hold();
  }
  ~Visit() {
    if (was_away_) mesh_.Release();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Mesh& mesh_;
  const bool was_away_;
};

void Mesh::CopySmall(bool copies) {
  const Visit visit(*this);
  copies_small_ = copies;
  for (const auto& [rank, entry] : peers_) entry.peer->CopySmall(copies);
}

void Mesh::Hold() {
  // Mostly it does already.
  if (holder_.load(std::memory_order_relaxed) == Holder::kOwner) return;
  Holder nobody = Holder::kNone;
  // A tender that sees wanted_ releases the mesh within one round.
  while (!holder_.compare_exchange_weak(nobody, Holder::kOwner, std::memory_order_acquire)) {
    nobody = Holder::kNone;
    wanted_.store(true, std::memory_order_relaxed);
    std::this_thread::yield();
  }
  wanted_.store(false, std::memory_order_relaxed);
}

void Mesh::Begin(absl::Duration patience) {
  Hold();
  SweepBusy();
  patience_ = patience;
  progress_ = progress();
  last_progress_ = MonotonicNow();
}

absl::Status Mesh::Finish() {
  Hold();
  finishing_ = true;
  absl::Status progress;
  while (progress.ok() && !Flushed()) progress = Progress();
  finishing_ = false;
  if (progress.ok()) Release();
  return progress;
}

bool Mesh::Flushed() const {
  return !AnyBusy([](const Peer& peer) { return !peer.Flushed(); });
}

void Mesh::Tend(absl::Time now) {
  Holder nobody = Holder::kNone;
  if (!holder_.compare_exchange_strong(nobody, Holder::kTender, std::memory_order_acquire)) return;
  broken_.Update(TendPeers(now));
  Release();
}

absl::Status Mesh::TendPeers(absl::Time now) {
  if (reach_.wake == nullptr && peers_.empty()) return absl::OkStatus();
  const absl::Time end = MonotonicNow() + kLongestTending;
  absl::Status tended;
  do {
    moved_ = false;
    // Polls peers in memory, and those whose rails may be lost or return; arms all others.
    for (auto& [rank, entry] : peers_) {
      if (!tended.ok()) break;
      Peer& peer = *entry.peer;
      const bool stirs =
          !entry.in_memory && peer.Acknowledged() && peer.AllUp() && !peer.sign_asked();
      tended = stirs ? peer.Arm(transport::Wake::kFrames) : PollPeer(entry, now);
    }
    if (tended.ok()) tended = PollStirred(0);
  } while (tended.ok() && moved_ && !wanted_.load(std::memory_order_relaxed) &&
           MonotonicNow() < end);
  // The owner's next frame, which would carry the acknowledgement, may be far away.
  if (tended.ok()) tended = OnBusy([](Peer& peer) { return peer.Acknowledge(); });
  SweepBusy();
  return tended;
}

void Mesh::Expect(collectives::Call call) {
  Hold();
  call_ = call;  // To() passes it to each peer that gets a transfer
}

Mesh::Ticket Mesh::Post(int peer, absl::Span<const std::byte> data, bool more) {
  Hold();
  Entry* const to = To(peer);
  return to != nullptr ? to->peer->PostSend(data, more) : 0;
}

Mesh::Ticket Mesh::PostDirect(int peer, absl::Span<const std::byte> data,
                              const collectives::RemoteMemory& to) {
  Hold();
  Entry* const entry = To(peer);
  return entry != nullptr ? entry->peer->PostDirect(data, to) : 0;
}

Mesh::Ticket Mesh::PostReceive(int peer, const collectives::ReceiveBuffer& buffer) {
  Hold();
  Entry* const from = To(peer);
  return from != nullptr ? from->peer->PostReceive(buffer) : 0;
}

bool Mesh::SendDone(int peer, Ticket ticket) const {
  const auto to = peers_.find(peer);
  return to != peers_.end() && to->second.peer->SendDone(ticket);
}

bool Mesh::ReceiveDone(int peer, Ticket ticket) const {
  const auto from = peers_.find(peer);
  return from != peers_.end() && from->second.peer->ReceiveDone(ticket);
}

bool Mesh::AnyBusy(absl::FunctionRef<bool(const Peer& peer)> is) const {
  return std::any_of(busy_.begin(), busy_.end(),
                     [is](const Entry* entry) { return is(*entry->peer); });
}

absl::Status Mesh::OnBusy(absl::FunctionRef<absl::Status(Peer& peer)> does) {
  for (const Entry* entry : busy_) {
    if (absl::Status done = does(*entry->peer); !done.ok()) return done;
  }
  return absl::OkStatus();
}

bool Mesh::OnlyUnacknowledged() const {
  return !AnyBusy([](const Peer& peer) { return !peer.OnlyUnacknowledged(); });
}

bool Mesh::Acknowledged(absl::FunctionRef<bool(int peer)> left) const {
  return std::all_of(peers_.begin(), peers_.end(), [left](const auto& entry) {
    return entry.second.peer->Acknowledged() || left(entry.first);
  });
}

std::vector<int> Mesh::Unacknowledged() const {
  std::vector<int> ranks;
  for (const auto& [rank, entry] : peers_) {
    if (!entry.peer->Acknowledged()) ranks.push_back(rank);
  }
  return ranks;
}

std::string Mesh::DescribeProgress(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() ? found->second.peer->DescribeProgress() : "";
}

bool Mesh::CannotConnect(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.peer->CannotConnect();
}

void Mesh::Settle(absl::Time deadline) {
  Begin(deadline - MonotonicNow());
  // Others may wait for acknowledgements just as this rank does.
  if (!OnBusy([](Peer& peer) { return peer.Acknowledge(); }).ok()) return;
  while (AnyBusy([](const Peer& peer) { return !peer.Acknowledged(); }) &&
         MonotonicNow() < deadline) {
    if (!Progress().ok()) return;
  }
  Release();
}

void Mesh::ExpectClose() {
  const Visit visit(*this);
  for (const auto& [rank, entry] : peers_) entry.peer->ExpectClose();
  broken_.Update(OnBusy([](Peer& peer) { return peer.Acknowledge(); }));
}

absl::Status Mesh::Progress() {
  Hold();
  const absl::Time start = MonotonicNow();
  absl::Time now = start;
  const auto in_memory = [](const Entry* entry) { return entry->in_memory; };
  const bool sockets = CompanionWaits() || SpinsOnSockets();
  const bool spins = sockets || std::any_of(busy_.begin(), busy_.end(), in_memory);
  for (bool at_first = true; at_first || now - start < kSpin; at_first = false) {
    const bool round = now >= next_round_;
    absl::Status polled = Poll(now);
    if (polled.ok() && sockets) polled = PollSockets(now, round);
    if (!polled.ok()) return polled;
    now = MonotonicNow();
    if (moved_ || KeepUnacknowledged()) {
      if (!at_first) spins_in_vain_ = 0;
      return CheckPatience(now);
    }
    if (!spins) break;
    // If ranks share a core, the rank that this one waits for may need it.
    std::this_thread::yield();
  }
  ++spins_in_vain_;
  return Sleep();
}

bool Mesh::KeepUnacknowledged() {
  if (!OnlyUnacknowledged()) return false;
  bool kept = false;
  for (const Entry* entry : busy_) kept = entry->peer->KeepUnacknowledged() || kept;
  return kept;
}

absl::StatusOr<absl::Duration> Mesh::ArmToSleep(bool acknowledges) {
  const auto held_back = [](const Peer& peer) { return peer.HeldBack(); };
  const auto restless = [](const Peer& peer) { return peer.Restless(); };
  // Acknowledgements by this side's NIC end a sleep only if nothing else is left to wait for.
  const transport::Wake wake = finishing_ || AnyBusy(held_back) || OnlyUnacknowledged()
                                   ? transport::Wake::kAll
                                   : transport::Wake::kFrames;
  absl::Status armed =
      acknowledges ? OnBusy([](Peer& peer) { return peer.Acknowledge(); }) : absl::OkStatus();
  // Arming comes before the last look, so that nothing can arrive unnoticed between them.
  armed.Update(OnBusy([wake](Peer& peer) { return peer.Arm(wake); }));
  const bool must_poll = MustPollCompanion() || must_poll_;
  if (!armed.ok()) return armed;
  // Acknowledging may have completed the last work.
  if (finishing_ && Flushed()) return absl::ZeroDuration();
  const absl::Time now = MonotonicNow();
  absl::Status polled = Poll(now);
  if (polled.ok()) polled = CheckPatience(now);
  if (!polled.ok()) return polled;
  if (moved_) return absl::ZeroDuration();
  const int longest = must_poll                            ? kPollingSleepMs
                      : AnyBusy(held_back)                 ? kHeldBackSleepMs
                      : !acknowledges || AnyBusy(restless) ? kRestlessSleepMs
                                                           : kLongestSleepMs;
  return absl::Milliseconds(longest);
}

absl::Status Mesh::Sleep() {
  // Most acknowledgements travel with this rank's next frame, so the first sleep sends none.
  for (bool acknowledges = false;; acknowledges = true) {
    const absl::StatusOr<absl::Duration> longest = ArmToSleep(acknowledges);
    if (!longest.ok() || *longest == absl::ZeroDuration()) return longest.status();
    const int timeout = std::min(net::PollTimeout(last_progress_ + patience_),
                                 static_cast<int>(absl::ToInt64Milliseconds(*longest)));
    // Return what has arrived at once; arming again can wait for the next sleep.
    absl::Status polled = PollStirred(timeout);
    if (moved_ || !polled.ok()) return polled;
  }
}

absl::StatusOr<bool> Mesh::Look() {
  Hold();
  const absl::Time now = MonotonicNow();
  absl::Status polled = Poll(now);
  if (polled.ok() && epoll_.valid()) polled = PollStirred(0);
  if (!polled.ok()) return polled;
  return KeepUnacknowledged() || moved_;
}

absl::StatusOr<absl::Duration> Mesh::PrepareSleep() {
  Hold();
  if (absl::Status opened = OpenEpoll(); !opened.ok()) return opened;
  SweepBusy();
  return ArmToSleep(/*acknowledges=*/true);
}

// Accepts waiting peers before this rank dials: otherwise ranks that all send around a ring before
// they receive would deadlock.
void Mesh::LetCallersIn() {
  if (reach_.callers == nullptr) return;
  for (const int rank : reach_.callers()) To(rank);
}

uint64_t Mesh::progress() const {
  uint64_t sum = progress_of_idle_;
  for (const Entry* entry : busy_) sum += entry->peer->progress();
  if (companion_ != nullptr) sum += companion_->progress();
  return sum;
}

uint64_t Mesh::progress(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() ? found->second.peer->progress() : 0;
}

absl::Status Mesh::CheckPatience(absl::Time now) {
  if (const uint64_t sum = progress(); sum != progress_) {
    progress_ = sum;
    last_progress_ = now;
  }
  if (now - last_progress_ < patience_) return absl::OkStatus();
  std::string text = absl::StrCat("nothing has moved for ", absl::FormatDuration(patience_), " (");
  // Describes only peers with unfinished transfers, unless there are none.
  const bool all_idle =
      !CompanionWaits() && std::all_of(peers_.begin(), peers_.end(),
                                       [](const auto& entry) { return entry.second.peer->Idle(); });
  bool first = true;
  if (CompanionWaits()) {
    text += companion_->DescribeProgress();
    first = false;
  }
  size_t described = 0;
  std::set<int> others;
  for (const auto& [rank, entry] : peers_) {
    if (entry.peer->Idle() && !all_idle) continue;
    if (described == kMostDescribed) {
      others.insert(rank);
      continue;
    }
    absl::StrAppend(&text, first ? "" : "; ", entry.peer->DescribeProgress());
    first = false;
    ++described;
  }
  if (!others.empty()) {
    absl::StrAppend(&text, "; and with ", others.size(), " more (", RankRanges(others), ")");
  }
  return absl::DeadlineExceededError(absl::StrCat(text, ")"));
}

absl::Status Mesh::Trouble() const {
  // The alarm first: once a rank is gone, errors of the links to it are only a consequence.
  absl::Status trouble = alarm_.Check();
  trouble.Update(broken_);
  return trouble;
}

absl::Status Mesh::Poll(absl::Time now) {
  moved_ = false;
  return now < next_round_ ? PollBusy(now) : PollRound(now);
}

absl::Status Mesh::PollRound(absl::Time now) {
  LetCallersIn();
  absl::Status polled = PollCompanion();
  return polled.ok() ? PollPeers(now, kMostInRound) : polled;
}

absl::Status Mesh::PollCompanion() {
  if (companion_ == nullptr) return absl::OkStatus();
  // Transfers that another rank has abandoned are only a consequence of the alarm.
  if (absl::Status trouble = Trouble(); !trouble.ok()) return trouble;
  const absl::StatusOr<bool> moved = companion_->Poll();
  moved_ = moved_ || moved.value_or(false);
  return moved.status();
}

absl::Status Mesh::PollPeer(Entry& entry, absl::Time now) {
  return OnPolled(entry, entry.peer->Poll(now));
}

absl::Status Mesh::OnPolled(Entry& entry, const absl::StatusOr<bool>& moved) {
  if (!moved.ok()) return moved.status();
  moved_ = moved_ || *moved;
  if (*moved) MakeBusy(entry);
  return absl::OkStatus();
}

absl::Status Mesh::PollSockets(absl::Time now, bool all) {
  Entry* any = nullptr;
  size_t sockets = 0;
  for (Entry* entry : busy_) {
    if (entry->in_memory) continue;
    any = entry;
    sockets += entry->peer->rail_count();
  }
  // Reading from one socket takes as long as asking the kernel whether there is anything to read.
  if (sockets == 1 && !all) return PollPeer(*any, now);
  for (const Entry* entry : busy_) {
    if (entry->in_memory) continue;
    if (absl::Status armed = entry->peer->Arm(transport::Wake::kFrames); !armed.ok()) return armed;
  }
  return any != nullptr ? PollStirred(0) : absl::OkStatus();
}

absl::Status Mesh::PollPeers(absl::Time now, size_t most) {
  next_round_ = now + kRoundPause;
  if (absl::Status trouble = Trouble(); !trouble.ok()) return trouble;
  size_t asked = 0;
  auto peer = peers_.lower_bound(next_in_round_);
  for (size_t i = 0; i < peers_.size() && asked < most; ++i, ++peer) {
    if (peer == peers_.end()) peer = peers_.begin();
    Entry& entry = peer->second;
    if (absl::Status polled = PollPeer(entry, now); !polled.ok()) return polled;
    if (!entry.in_memory) ++asked;
  }
  next_in_round_ = peer == peers_.end() ? 0 : peer->first;
  SweepBusy();
  return absl::OkStatus();
}

absl::Status Mesh::PollBusy(absl::Time now) {
  absl::Status polled = Trouble();
  if (polled.ok()) polled = PollCompanion();
  for (Entry* entry : busy_) {
    if (!polled.ok()) break;
    if (entry->in_memory || entry->peer->HasForLinks()) polled = PollPeer(*entry, now);
  }
  return polled;
}

absl::Status Mesh::PollStirred(int timeout_ms) {
  if (absl::Status opened = OpenEpoll(); !opened.ok()) return opened;
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  if (count < 0 && errno != EINTR) return net::ErrnoError("epoll_wait", errno);
  if (absl::Status trouble = Trouble(); !trouble.ok()) return trouble;
  const absl::Time now = MonotonicNow();
  bool rang = false;
  bool beside = false;
  const Entry* last = nullptr;
  for (int i = 0; i < count; ++i) {
    const auto& stirred = *static_cast<const Source*>(events[static_cast<size_t>(i)].data.ptr);
    if (stirred.entry != nullptr) {
      stirred.entry->peer->link(stirred.rail).Answer(now);
      stirred.entry->peer->Stir(stirred.rail);
      MakeBusy(*stirred.entry);
    } else if (stirred.wake != nullptr) {
      stirred.wake->Clear();
      rang = true;
    } else {
      beside = true;
    }
  }
  for (int i = 0; i < count; ++i) {
    const auto& stirred = *static_cast<const Source*>(events[static_cast<size_t>(i)].data.ptr);
    // One poll serves adjacent events of one peer.
    if (stirred.entry == nullptr || stirred.entry == last) continue;
    last = stirred.entry;
    absl::Status polled = OnPolled(*stirred.entry, stirred.entry->peer->PollStirred(now));
    if (!polled.ok()) return polled;
  }
  if (rang) {
    LetCallersIn();
    // The next Poll is a round: the connection may be for any peer.
    next_round_ = absl::InfinitePast();
  }
  // The companion is the owner's.
  if (beside && companion_ != nullptr &&
      holder_.load(std::memory_order_relaxed) == Holder::kOwner) {
    companion_->Answer();
    return PollCompanion();
  }
  return absl::OkStatus();
}

absl::Time Mesh::LastSign(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = peers_.find(rank);
  if (found == peers_.end()) return absl::InfinitePast();
  found->second.peer->AskForSign();
  return found->second.peer->last_sign();
}

std::vector<Flow> Mesh::Flows() const {
  std::vector<Flow> flows;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rank, entry] : peers_) {
    const Peer* const peer = entry.peer.get();
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      flows.push_back({rank, i, peer->rail_traffic(i)});
    }
  }
  return flows;
}

Traffic Mesh::Moved() {
  const Visit visit(*this);
  Traffic moved = moved_of_idle_;
  for (const Entry* entry : busy_) moved += TrafficOf(*entry->peer);
  return moved;
}

std::vector<RailTotals> Mesh::Totals() const {
  std::vector<RailTotals> totals;
  std::vector<double> rates;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rank, entry] : peers_) {
    const Peer* const peer = entry.peer.get();
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      RailTotals of_peer = TotalsOf(*peer, i);
      if (i < totals.size()) {
        Add(of_peer, totals[i]);
      } else {
        totals.push_back(std::move(of_peer));
      }
      rates.resize(totals.size());
      rates[i] += peer->rail_health(i).rate.load(std::memory_order_relaxed);
    }
  }
  const double fastest = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  for (size_t i = 0; fastest > 0 && i < totals.size(); ++i) totals[i].weight = rates[i] / fastest;
  return totals;
}

}  // namespace railhead::rails
