// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/lane_messenger.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::comm {

absl::StatusOr<std::unique_ptr<LaneMessenger>> LaneMessenger::Create(int rank, Alarm alarm,
                                                                     rails::Reach reach,
                                                                     std::byte* memory,
                                                                     const std::vector<int>& here,
                                                                     bool crowded) {
  std::unique_ptr<LaneMessenger> messenger(new LaneMessenger());
  messenger->patience_.look = kSpin;
  messenger->patience_.cancelled = alarm.raised;
  messenger->patience_.crowded = crowded;
  if (memory != nullptr) {
    const auto self = std::find(here.begin(), here.end(), rank) - here.begin();
    messenger->in_mailbox_.assign(
        static_cast<size_t>(*std::max_element(here.begin(), here.end())) + 1, kElsewhere);
    for (size_t i = 0; i < here.size(); ++i) {
      messenger->in_mailbox_[static_cast<size_t>(here[i])] = static_cast<int>(i);
    }
    messenger->mailbox_ = std::make_unique<shm::Mailbox>(memory, static_cast<int>(self), here);
    messenger->spread_.emplace(messenger->mailbox_->Cores(), static_cast<size_t>(self));
    messenger->patience_.spread = &*messenger->spread_;
  }
  if (reach.open != nullptr) {
    reach.open = [raw = messenger.get(), open = std::move(reach.open)](int peer) {
      absl::StatusOr<std::unique_ptr<rails::Peer>> opened = open(peer);
      if (opened.ok()) raw->opened_.push_back(peer);
      return opened;
    };
  }
  absl::Status opened = messenger->beside_.Open(messenger->mailbox_.get());
  if (!opened.ok()) return opened;
  absl::StatusOr<std::unique_ptr<rails::Mesh>> mesh =
      rails::Mesh::Create({}, alarm, std::move(reach));
  if (!mesh.ok()) return mesh.status();
  messenger->mesh_ = *std::move(mesh);
  if (absl::Status added = messenger->mesh_->Accompany(messenger->beside_); !added.ok()) {
    return added;
  }
  return messenger;
}

void LaneMessenger::Ring() { beside_.Ring(); }

absl::StatusOr<LaneMessenger::Came> LaneMessenger::Wait(absl::Duration longest) {
  // Without rails, a look is a few reads of memory: no clock and no system call between them.
  if (mailbox_ != nullptr && !mesh_->HasPeers()) {
    const absl::StatusOr<bool> moved = SpinInMemory();
    if (!moved.ok()) return moved.status();
    if (*moved) return Came::kAtOnce;
  }
  mesh_->Begin(longest);
  absl::Status moved = mesh_->Progress();
  if (absl::IsDeadlineExceeded(moved)) return Came::kNothing;
  if (!moved.ok()) return moved;
  return Came::kLater;
}

absl::StatusOr<bool> LaneMessenger::SpinInMemory() {
  if (++spins_ % kBetweenRounds == 0) {
    const absl::StatusOr<bool> moved = mesh_->Look();
    if (!moved.ok() || *moved) return moved;
  }
  absl::Time start = absl::InfiniteFuture();
  absl::Duration waited;
  while (waited < patience_.look) {
    for (int i = 0; i < patience_.LooksAtOnce(); ++i) {
      const absl::StatusOr<bool> moved = beside_.Poll();
      if (!moved.ok() || *moved) return moved;
      patience_.BetweenLooks();
    }
    if (absl::Status failed = Alarm{patience_.cancelled}.Check(); !failed.ok()) return failed;
    const absl::Time now = MonotonicNow();
    start = std::min(start, now);
    waited = now - start;
    patience_.AfterLooks(absl::ToInt64Nanoseconds(waited));
  }
  return false;
}

absl::StatusOr<bool> LaneMessenger::Look() {
  return mailbox_ != nullptr && !mesh_->HasPeers() ? beside_.Poll() : mesh_->Look();
}

void LaneMessenger::Expect(collectives::Call call) {
  mesh_->Expect(call);
  if (mailbox_ != nullptr) mailbox_->Expect(call);
}

LaneMessenger::Ticket LaneMessenger::PostSend(int peer, absl::Span<const std::byte> data) {
  const int here = Number(peer);
  return here == kElsewhere ? mesh_->PostSend(peer, data) : mailbox_->PostSend(here, data);
}

LaneMessenger::Ticket LaneMessenger::PostPart(int peer, absl::Span<const std::byte> data) {
  const int here = Number(peer);
  return here == kElsewhere ? mesh_->PostPart(peer, data) : mailbox_->PostSend(here, data);
}

LaneMessenger::Ticket LaneMessenger::PostReceive(int peer,
                                                 const collectives::ReceiveBuffer& buffer) {
  const int here = Number(peer);
  return here == kElsewhere ? mesh_->PostReceive(peer, buffer)
                            : mailbox_->PostReceive(here, buffer);
}

bool LaneMessenger::SendDone(int peer, Ticket ticket) const {
  const int here = Number(peer);
  return here == kElsewhere ? mesh_->SendDone(peer, ticket) : mailbox_->SendDone(here, ticket);
}

bool LaneMessenger::ReceiveDone(int peer, Ticket ticket) const {
  const int here = Number(peer);
  return here == kElsewhere ? mesh_->ReceiveDone(peer, ticket)
                            : mailbox_->ReceiveDone(here, ticket);
}

absl::Status LaneMessenger::Beside::Open(shm::Mailbox* mailbox) {
  mailbox_ = mailbox;
  absl::StatusOr<net::Event> opened = net::Event::Open();
  if (!opened.ok()) return opened.status();
  event_ = *std::move(opened);
  epoll_ = net::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return net::ErrnoError("epoll_create1", errno);
  return Watch(event_.fd());
}

absl::Status LaneMessenger::Beside::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

void LaneMessenger::Beside::Ring() {
  rung_.store(true, std::memory_order_release);
  event_.Signal();
}

absl::StatusOr<bool> LaneMessenger::Beside::Poll() {
  const bool rung =
      rung_.load(std::memory_order_relaxed) && rung_.exchange(false, std::memory_order_acquire);
  if (rung) ++rings_;
  if (mailbox_ == nullptr) return rung;
  absl::StatusOr<bool> moved = mailbox_->Poll();
  if (!moved.ok()) return moved;
  return rung || *moved;
}

absl::Status LaneMessenger::Beside::Arm() {
  if (mailbox_ == nullptr) return absl::OkStatus();
  if (absl::Status armed = mailbox_->Arm(); !armed.ok()) return armed;
  // Its first time opens the mailbox's descriptor.
  if (watches_mailbox_) return absl::OkStatus();
  absl::Status watched = Watch(mailbox_->event_fd());
  watches_mailbox_ = watched.ok();
  return watched;
}

void LaneMessenger::Beside::Answer() {
  event_.Clear();
  if (mailbox_ != nullptr) mailbox_->Answer();
}

uint64_t LaneMessenger::Beside::progress() const {
  return rings_ + (mailbox_ != nullptr ? mailbox_->progress() : 0);
}

std::string LaneMessenger::Beside::DescribeProgress() const {
  return mailbox_ != nullptr ? mailbox_->DescribeProgress() : "";
}

}  // namespace railhead::comm
