// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/mesh.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/net/socket.h"

namespace railhead::rails {
namespace {

// As long as a wake-up from sleep costs: looking round longer cannot win more.
constexpr absl::Duration kLookRound = absl::Microseconds(50);
// How long to sleep between looks where a link cannot wake us.
constexpr int kPollingSleepMs = 1;
// A link notices a peer that has fallen silent only when it is polled.
constexpr int kLongestSleepMs = 1000;
// A rail that has something under way may die, and a dead one return, without any descriptor
// stirring.
constexpr int kRestlessSleepMs = 20;
// What a rail holds becomes less without its descriptor stirring.
constexpr int kHeldBackSleepMs = 2;

// Wakes the waits on `epoll` when `fd` is readable; then its `source`, if it has one, must be
// answered.
absl::Status AddTo(const net::Fd& epoll, int fd, transport::WakeSource* source) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = source;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Mesh>> Mesh::Create(std::map<int, std::unique_ptr<Peer>> peers,
                                                   Alarm alarm, Reach reach) {
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(peers), alarm, std::move(reach), std::move(epoll)));
  absl::Status watched;
  if (alarm.event_fd >= 0) watched.Update(AddTo(mesh->epoll_, alarm.event_fd, nullptr));
  for (const auto& doorbell : mesh->reach_.doorbells) {
    watched.Update(AddTo(mesh->epoll_, doorbell->event_fd(), doorbell.get()));
  }
  for (const auto& [rank, peer] : mesh->peers_) watched.Update(mesh->Watch(*peer));
  if (!watched.ok()) return watched;
  return mesh;
}

Mesh::Mesh(std::map<int, std::unique_ptr<Peer>> peers, Alarm alarm, Reach reach, net::Fd epoll)
    : peers_(std::move(peers)), alarm_(alarm), reach_(std::move(reach)), epoll_(std::move(epoll)) {}

absl::Status Mesh::Watch(Peer& peer) {
  for (size_t i = 0; i < peer.rail_count(); ++i) {
    transport::Link& link = peer.link(i);
    const int fd = link.event_fd();
    must_poll_ = must_poll_ || fd < 0;
    if (fd < 0) continue;
    if (absl::Status added = AddTo(epoll_, fd, &link); !added.ok()) return added;
  }
  return absl::OkStatus();
}

Peer* Mesh::To(int rank) {
  const auto found = peers_.find(rank);
  if (found != peers_.end()) return found->second.get();
  absl::StatusOr<std::unique_ptr<Peer>> opened =
      reach_.open != nullptr
          ? reach_.open(rank)
          : absl::UnimplementedError(absl::StrCat("rank ", rank, " is not connected"));
  absl::Status made = opened.status();
  if (made.ok()) made = Watch(**opened);
  broken_.Update(made);
  if (!made.ok()) return nullptr;
  (*opened)->Expect(call_);
  (*opened)->CopySmall(copies_small_);
  const std::lock_guard<std::mutex> lock(mutex_);
  return (peers_[rank] = *std::move(opened)).get();
}

void Mesh::CopySmall(bool copies) {
  copies_small_ = copies;
  for (const auto& [rank, peer] : peers_) peer->CopySmall(copies);
}

void Mesh::Begin(absl::Duration patience) {
  patience_ = patience;
  progress_ = ProgressOfAll();
  last_progress_ = absl::Now();
}

absl::Status Mesh::Finish() {
  finishing_ = true;
  absl::Status progress;
  while (progress.ok() && !Flushed()) progress = Progress();
  finishing_ = false;
  return progress;
}

void Mesh::Expect(collectives::Call call) {
  call_ = call;
  for (const auto& [rank, peer] : peers_) peer->Expect(call);
}

Mesh::Ticket Mesh::PostSend(int peer, absl::Span<const std::byte> data) {
  Peer* const to = To(peer);
  return to != nullptr ? to->PostSend(data) : 0;
}

Mesh::Ticket Mesh::PostReceive(int peer, const collectives::ReceiveBuffer& buffer) {
  Peer* const from = To(peer);
  return from != nullptr ? from->PostReceive(buffer) : 0;
}

bool Mesh::SendDone(int peer, Ticket ticket) const {
  const auto to = peers_.find(peer);
  return to != peers_.end() && to->second->SendDone(ticket);
}

bool Mesh::ReceiveDone(int peer, Ticket ticket) const {
  const auto from = peers_.find(peer);
  return from != peers_.end() && from->second->ReceiveDone(ticket);
}

bool Mesh::Flushed() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->Flushed(); });
}

bool Mesh::Restless() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->Restless(); });
}

bool Mesh::HeldBack() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->HeldBack(); });
}

void Mesh::Settle(absl::Time deadline) {
  Begin(deadline - absl::Now());
  const auto acknowledged = [this] {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& entry) { return entry.second->Acknowledged(); });
  };
  // Others may wait for acknowledgements just as this rank does.
  if (!OnAll([](Peer& peer) { return peer.Acknowledge(); }).ok()) return;
  while (!acknowledged() && absl::Now() < deadline) {
    if (!Progress().ok()) return;
  }
}

absl::Status Mesh::Progress() {
  const absl::Time start = absl::Now();
  absl::Time now = start;
  do {
    const absl::StatusOr<bool> moved = PollAll(now);
    if (!moved.ok()) return moved.status();
    now = absl::Now();
    if (*moved || KeepUnacknowledged()) return CheckPatience(now);
    // Where ranks share a core, what this one waits for may need it.
    std::this_thread::yield();
  } while (now - start < kLookRound);
  return Sleep();
}

bool Mesh::OnlyUnacknowledged() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->OnlyUnacknowledged(); });
}

bool Mesh::KeepUnacknowledged() {
  if (!OnlyUnacknowledged()) return false;
  bool kept = false;
  for (const auto& [rank, peer] : peers_) kept = peer->KeepUnacknowledged() || kept;
  return kept;
}

absl::Status Mesh::Sleep() {
  // Nobody waits for what this side's NIC says of frames, unless nothing else is left to wait for.
  const transport::Wake wake = finishing_ || HeldBack() || OnlyUnacknowledged()
                                   ? transport::Wake::kAll
                                   : transport::Wake::kFrames;
  for (bool at_first = true;; at_first = false) {
    // What was taken is mostly told by the answer that this rank is about to send, so not at once.
    absl::Status armed =
        at_first ? absl::OkStatus() : OnAll([](Peer& peer) { return peer.Acknowledge(); });
    // Arming comes before the last look, so that nothing can arrive unnoticed between them.
    armed.Update(OnAll([wake](Peer& peer) { return peer.Arm(wake); }));
    if (!armed.ok()) return armed;
    const absl::Time now = absl::Now();
    const absl::StatusOr<bool> moved = PollAll(now);
    if (!moved.ok()) return moved.status();
    absl::Status patient = CheckPatience(now);
    if (*moved || !patient.ok()) return patient;
    const int longest = must_poll_               ? kPollingSleepMs
                        : HeldBack()             ? kHeldBackSleepMs
                        : at_first || Restless() ? kRestlessSleepMs
                                                 : kLongestSleepMs;
    const int timeout = std::min(net::PollTimeout(last_progress_ + patience_), longest);
    std::array<epoll_event, 16> events;
    const int stirred = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    if (stirred < 0 && errno != EINTR) return net::ErrnoError("epoll_wait", errno);
    const absl::Time woken = absl::Now();
    for (int i = 0; i < stirred; ++i) {
      void* const source = events[static_cast<size_t>(i)].data.ptr;
      if (source != nullptr) static_cast<transport::WakeSource*>(source)->Answer(woken);
    }
    LetCallersIn();
    if (stirred <= 0) continue;
    // Whoever waits for what has come gets it at once: arming again can wait for the next sleep.
    const absl::StatusOr<bool> came = PollAll(woken);
    if (!came.ok() || *came) return came.status();
  }
}

// Who has something for this rank is let in before this rank asks for it, or ranks that send around
// a circle before they receive would wait for each other.
void Mesh::LetCallersIn() {
  if (reach_.callers == nullptr) return;
  for (const int rank : reach_.callers()) To(rank);
}

uint64_t Mesh::ProgressOfAll() const {
  uint64_t sum = 0;
  for (const auto& [rank, peer] : peers_) sum += peer->progress();
  return sum;
}

absl::Status Mesh::CheckPatience(absl::Time now) {
  if (const uint64_t progress = ProgressOfAll(); progress != progress_) {
    progress_ = progress;
    last_progress_ = now;
  }
  if (now - last_progress_ < patience_) return absl::OkStatus();
  std::string text = absl::StrCat("nothing has moved for ", absl::FormatDuration(patience_), " (");
  // Of many peers only those with which something is still to be done.
  const bool all_idle = std::all_of(peers_.begin(), peers_.end(),
                                    [](const auto& entry) { return entry.second->Idle(); });
  bool first = true;
  for (const auto& [rank, peer] : peers_) {
    if (peer->Idle() && !all_idle) continue;
    absl::StrAppend(&text, first ? "" : "; ", peer->DescribeProgress());
    first = false;
  }
  return absl::DeadlineExceededError(absl::StrCat(text, ")"));
}

absl::StatusOr<bool> Mesh::PollAll(absl::Time now) {
  // The alarm first: once a rank is gone, what the links to it say is only a consequence.
  if (alarm_.raised != nullptr && alarm_.raised->load(std::memory_order_acquire)) {
    return absl::CancelledError("the job has failed");
  }
  if (!broken_.ok()) return broken_;
  bool any = false;
  for (const auto& [rank, peer] : peers_) {
    const absl::StatusOr<bool> moved = peer->Poll(now);
    if (!moved.ok()) return moved.status();
    any = any || *moved;
  }
  return any;
}

absl::Status Mesh::OnAll(absl::FunctionRef<absl::Status(Peer& peer)> does) {
  for (const auto& [rank, peer] : peers_) {
    if (absl::Status done = does(*peer); !done.ok()) return done;
  }
  return absl::OkStatus();
}

std::vector<Flow> Mesh::Flows() const {
  std::vector<Flow> flows;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rank, peer] : peers_) {
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      flows.push_back({rank, i, peer->rail_traffic(i)});
    }
  }
  return flows;
}

Traffic Mesh::Moved() const {
  Traffic moved;
  for (const auto& [rank, peer] : peers_) {
    for (size_t i = 0; i < peer->rail_count(); ++i) moved += peer->rail_traffic(i);
  }
  return moved;
}

std::vector<RailTotals> Mesh::Totals() const {
  std::vector<RailTotals> totals;
  std::vector<double> rates;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rank, peer] : peers_) {
    totals.resize(peer->rail_count());
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      const transport::LinkStats& stats = peer->rail_stats(i);
      totals[i].name = peer->rail_name(i);
      const RailHealth& health = peer->rail_health(i);
      const bool lost = health.lost.load(std::memory_order_relaxed);
      totals[i].up = totals[i].up && !lost;
      ++totals[i].peers;
      totals[i].lost_peers += lost ? 1 : 0;
      totals[i].failovers += health.failovers.load(std::memory_order_relaxed);
      totals[i].returns += health.returns.load(std::memory_order_relaxed);
      rates.resize(totals.size());
      rates[i] += health.rate.load(std::memory_order_relaxed);
      totals[i].strangers += stats.strangers.load(std::memory_order_relaxed);
      totals[i].transmit_bytes += stats.transmit_bytes.load(std::memory_order_relaxed);
      totals[i].receive_bytes += stats.receive_bytes.load(std::memory_order_relaxed);
      totals[i].retransmits += stats.retransmits.load(std::memory_order_relaxed);
    }
  }
  const double fastest = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  for (size_t i = 0; fastest > 0 && i < totals.size(); ++i) totals[i].weight = rates[i] / fastest;
  return totals;
}

}  // namespace railhead::rails
