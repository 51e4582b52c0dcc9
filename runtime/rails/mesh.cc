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

}  // namespace

absl::StatusOr<std::unique_ptr<Mesh>> Mesh::Create(std::map<int, std::unique_ptr<Peer>> peers,
                                                   Alarm alarm) {
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::vector<int> fds;
  if (alarm.event_fd >= 0) fds.push_back(alarm.event_fd);
  bool must_poll = false;
  for (const auto& [rank, peer] : peers) {
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      const int fd = peer->link(i).event_fd();
      must_poll = must_poll || fd < 0;
      if (fd >= 0) fds.push_back(fd);
    }
  }
  for (const int fd : fds) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return net::ErrnoError("epoll_ctl", errno);
    }
  }
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(peers), alarm, std::move(epoll)));
  mesh->must_poll_ = must_poll;
  return mesh;
}

Mesh::Mesh(std::map<int, std::unique_ptr<Peer>> peers, Alarm alarm, net::Fd epoll)
    : peers_(std::move(peers)), alarm_(alarm), epoll_(std::move(epoll)) {}

void Mesh::Begin(absl::Duration patience) {
  patience_ = patience;
  last_moved_ = absl::Now();
}

absl::Status Mesh::Finish() {
  while (!Flushed()) {
    if (absl::Status progress = Progress(); !progress.ok()) return progress;
  }
  return absl::OkStatus();
}

Mesh::Ticket Mesh::PostSend(int peer, absl::Span<const std::byte> data) {
  return peers_.find(peer)->second->PostSend(data);
}

Mesh::Ticket Mesh::PostReceive(int peer, const collectives::ReceiveBuffer& buffer) {
  return peers_.find(peer)->second->PostReceive(buffer);
}

bool Mesh::SendDone(int peer, Ticket ticket) const {
  return peers_.find(peer)->second->SendDone(ticket);
}

bool Mesh::ReceiveDone(int peer, Ticket ticket) const {
  return peers_.find(peer)->second->ReceiveDone(ticket);
}

bool Mesh::Flushed() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->Flushed(); });
}

absl::Status Mesh::Progress() {
  const absl::Time start = absl::Now();
  absl::Time now = start;
  do {
    const absl::StatusOr<bool> moved = PollAll();
    if (!moved.ok()) return moved.status();
    now = absl::Now();
    if (*moved) {
      last_moved_ = now;
      return absl::OkStatus();
    }
    // Where ranks share a core, what this one waits for may need it.
    std::this_thread::yield();
  } while (now - start < kLookRound);
  return Sleep();
}

absl::Status Mesh::Sleep() {
  while (true) {
    // Arming comes before the last look, so that nothing can arrive unnoticed between them.
    if (absl::Status armed = ArmAll(); !armed.ok()) return armed;
    const absl::StatusOr<bool> moved = PollAll();
    if (!moved.ok()) return moved.status();
    const absl::Time now = absl::Now();
    if (*moved) {
      last_moved_ = now;
      return absl::OkStatus();
    }
    if (now - last_moved_ >= patience_) {
      std::string text =
          absl::StrCat("nothing has moved for ", absl::FormatDuration(patience_), " (");
      bool first = true;
      for (const auto& [rank, peer] : peers_) {
        absl::StrAppend(&text, first ? "" : "; ", peer->DescribeProgress());
        first = false;
      }
      return absl::DeadlineExceededError(absl::StrCat(text, ")"));
    }
    const int timeout = std::min(net::PollTimeout(last_moved_ + patience_),
                                 must_poll_ ? kPollingSleepMs : kLongestSleepMs);
    std::array<epoll_event, 16> events;
    if (::epoll_wait(epoll_.get(), events.data(), events.size(), timeout) < 0 && errno != EINTR) {
      return net::ErrnoError("epoll_wait", errno);
    }
  }
}

absl::StatusOr<bool> Mesh::PollAll() {
  // The alarm first: once a rank is gone, what the links to it say is only a consequence.
  if (alarm_.raised != nullptr && alarm_.raised->load(std::memory_order_acquire)) {
    return absl::CancelledError("the job has failed");
  }
  bool any = false;
  for (const auto& [rank, peer] : peers_) {
    const absl::StatusOr<bool> moved = peer->Poll();
    if (!moved.ok()) return moved.status();
    any = any || *moved;
  }
  return any;
}

absl::Status Mesh::ArmAll() {
  for (const auto& [rank, peer] : peers_) {
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      if (absl::Status armed = peer->link(i).Arm(); !armed.ok()) return peer->LinkError(i, armed);
    }
  }
  return absl::OkStatus();
}

std::vector<RailTotals> Mesh::Totals() const {
  std::vector<RailTotals> totals;
  for (const auto& [rank, peer] : peers_) {
    totals.resize(peer->rail_count());
    for (size_t i = 0; i < peer->rail_count(); ++i) {
      const transport::LinkStats& stats = peer->rail_stats(i);
      totals[i].name = peer->rail_name(i);
      totals[i].up = totals[i].up && peer->rail_up(i);
      totals[i].transmit_bytes += stats.transmit_bytes.load(std::memory_order_relaxed);
      totals[i].receive_bytes += stats.receive_bytes.load(std::memory_order_relaxed);
      totals[i].retransmits += stats.retransmits.load(std::memory_order_relaxed);
    }
  }
  return totals;
}

}  // namespace railhead::rails
