// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/verbs_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::transport::verbs {
namespace {

// How often the door is asked about visitors.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);
// The peer may be slow to answer, since it answers when it polls.
constexpr absl::Duration kExchangePatience = absl::Seconds(1);
// A packet of the greeting may be lost and repeated after the queue pair's timeout.
constexpr absl::Duration kGreetingPatience = absl::Seconds(2);
// A knock that the peer has taken back may still stand at the door for a moment.
constexpr absl::Duration kKnocksFade = absl::Milliseconds(200);
constexpr size_t kLongestOffer = 1024;
constexpr char kReady = '!';

// What is said fits into the empty buffer of a new connection.
absl::Status Say(int fd, absl::string_view bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(bytes.size()) ? absl::OkStatus()
                                                    : net::ErrnoError("offer", errno);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> VerbsLink::Create(std::shared_ptr<const DevicePort> port,
                                                        std::shared_ptr<UserMemory> memory,
                                                        std::unique_ptr<Door> door,
                                                        absl::string_view peer) {
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::unique_ptr<VerbsLink> link(
      new VerbsLink(std::move(port), std::move(memory), std::move(door), std::move(epoll), peer));
  // Whoever waits in the hall is woken by that, too.
  absl::Status watched = link->Watch(link->door_->event_fd());
  watched.Update(link->Watch(link->port_->event_fd()));
  if (!watched.ok()) return watched;
  return link;
}

VerbsLink::VerbsLink(std::shared_ptr<const DevicePort> port, std::shared_ptr<UserMemory> memory,
                     std::unique_ptr<Door> door, net::Fd epoll, absl::string_view peer)
    : port_(std::move(port)),
      memory_(std::move(memory)),
      peer_(peer),
      door_(std::move(door)),
      epoll_(std::move(epoll)),
      error_(At(absl::UnavailableError("not connected yet"))) {}

// The queue pair goes before the memory that it uses.
VerbsLink::~VerbsLink() { Clear(); }

absl::Status VerbsLink::At(const absl::Status& status) const {
  const std::string where = absl::StrCat(port_->name(), ", peer ", peer_);
  if (absl::StartsWith(status.message(), where)) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

absl::Status VerbsLink::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

absl::Status VerbsLink::Prepare() {
  absl::Status made = MakeOffer();
  if (!absl::IsResourceExhausted(made)) return made;
  memory_->MakeRoom();
  made = MakeOffer();
  // Adapters run out of queue pairs, too.
  if (!made.ok()) memory_->TryAgain();
  return made;
}

absl::Status VerbsLink::MakeOffer() {
  if (!rings_.has_value()) {
    absl::StatusOr<Rings> rings = Rings::Create(*port_);
    if (!rings.ok()) return rings.status();
    rings_.emplace(*std::move(rings));
  }
  absl::StatusOr<Offer> offer = Offer::Make(port_, *rings_, *memory_);
  if (!offer.ok()) return offer.status();
  offer_.emplace(*std::move(offer));
  return absl::OkStatus();
}

absl::Status VerbsLink::Accept(absl::string_view address) {
  Offer offer = *std::exchange(offer_, std::nullopt);
  absl::StatusOr<std::unique_ptr<Channel>> channel =
      std::move(offer).Accept(address, peer_, port_->Now() + kGreetingPatience, stats_);
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  if (channel_->connection_fd() >= 0) {
    if (absl::Status watched = Watch(channel_->connection_fd()); !watched.ok()) return watched;
  }
  if (absl::Status watched = Watch(channel_->event_fd()); !watched.ok()) return watched;
  return Say(socket_.get(), absl::string_view(&kReady, 1));
}

absl::StatusOr<bool> VerbsLink::TrySend(const FrameHeader& header,
                                        absl::Span<const std::byte> payload) {
  if (!up_) return error_;
  absl::StatusOr<bool> sent = channel_->TrySend(header, payload);
  if (!sent.ok()) return Lose(sent.status());
  return sent;
}

absl::StatusOr<bool> VerbsLink::Poll(FrameSink sink) {
  if (!up_) return error_;
  absl::StatusOr<bool> moved = channel_->Poll(sink);
  if (!moved.ok()) return Lose(moved.status());
  // Whoever polls does so until nothing moves.
  if (*moved) return true;
  port_->LookAtEvents();
  if (port_->downs() != downs_) {
    return Lose(At(absl::UnavailableError(
        absl::StrCat("the device says that its port went down; this side's port is ",
                     port_->StateNow(), ": check its cable, switch port and network interface"))));
  }
  const absl::Time now = port_->Now();
  if (absl::Status idle = channel_->LookAfterIdle(now); !idle.ok()) return Lose(idle);
  if (now >= next_look_ || door_->called()) {
    if (absl::Status looked = LookAtDoor(now); !looked.ok()) return looked;
  }
  return false;
}

absl::Status VerbsLink::LookAtDoor(absl::Time now) {
  next_look_ = now + kLookPause;
  CountStrangers();
  if (!door_->PeerLeft(now)) return absl::OkStatus();
  return Lose(At(absl::UnavailableError("the peer has lost the connection")));
}

// Those at the door; a channel counts its own.
void VerbsLink::CountStrangers() {
  const uint64_t all = door_->strangers();
  stats_.strangers.fetch_add(all - std::exchange(door_strangers_, all), std::memory_order_relaxed);
}

absl::Status VerbsLink::Lose(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  if (up_) unacknowledged_ = channel_->unacknowledged();
  Clear();
  up_ = false;
  return error_ = status;
}

void VerbsLink::Clear() {
  channel_.reset();
  offer_.reset();
  socket_.Reset();
}

absl::Status VerbsLink::Begin(net::Fd socket, absl::Time now) {
  Clear();
  downs_ = port_->downs();
  heard_.clear();
  give_up_ = now + kExchangePatience;
  if (absl::Status prepared = Prepare(); !prepared.ok()) return prepared;
  WireWriter writer;
  writer.String(offer_->Address());
  if (absl::Status said = Say(socket.get(), writer.Take()); !said.ok()) return said;
  if (absl::Status watched = Watch(socket.get()); !watched.ok()) return watched;
  socket_ = std::move(socket);
  return absl::OkStatus();
}

// Hears the peer's offer, takes it, and hears that the peer has taken this side's.
absl::Status VerbsLink::Exchange(absl::Time now) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(socket_.get(), kLongestOffer - heard_.size(), &heard_);
  if (!open.ok()) return open.status();
  WireReader reader(heard_);
  const std::string address = reader.String(kLongestOffer);
  if (reader.ok() && channel_ == nullptr) {
    if (absl::Status accepted = Accept(address); !accepted.ok()) return accepted;
  }
  if (reader.Raw(1) == absl::string_view(&kReady, 1)) {
    socket_.Reset();
    return absl::OkStatus();
  }
  if (heard_.size() == kLongestOffer) {
    return absl::InternalError("the peer's offer is too long; run the same version of Railhead");
  }
  if (!*open) return absl::UnavailableError("the peer gave up");
  if (now >= give_up_) return absl::DeadlineExceededError("the peer did not make its offer");
  return absl::OkStatus();
}

absl::StatusOr<bool> VerbsLink::Reconnect(absl::Time now) {
  if (up_) return true;
  port_->LookAtEvents();
  if (ups_ != port_->ups()) door_->Hurry(now);
  ups_ = port_->ups();
  const bool idle = channel_ == nullptr && !socket_.valid();
  // Who dials knows of no newer one than its own.
  absl::StatusOr<net::Fd> socket = net::Fd();
  if (idle || !door_->dials()) socket = door_->Advance(now);
  CountStrangers();
  absl::Status failure = socket.status();
  if (failure.ok() && !idle && door_->dials() && door_->PeerLeft(now)) {
    failure = absl::UnavailableError("the peer gave up");
  }
  if (failure.ok() && socket->valid()) failure = Begin(*std::move(socket), now);
  if (failure.ok() && idle && !socket_.valid() && !door_->dials()) door_->Knock(now);
  if (failure.ok() && socket_.valid()) failure = Exchange(now);
  bool greeted = false;
  if (failure.ok() && channel_ != nullptr && !socket_.valid()) {
    const absl::StatusOr<bool> over = channel_->Greet();
    failure = over.status();
    greeted = over.ok() && *over;
  }
  if (!failure.ok()) {
    Clear();
    return At(failure);
  }
  if (!greeted) return false;
  up_ = true;
  error_ = absl::OkStatus();
  next_look_ = port_->Now() + kKnocksFade;
  return true;
}

void VerbsLink::SetHold(size_t bytes) {
  if (up_) channel_->SetHold(bytes);
}

void VerbsLink::Answer(absl::Time /*now*/) {
  port_->LookAtEvents();
  if (channel_ != nullptr) channel_->Answer();
}

absl::Status VerbsLink::Acknowledge() {
  if (!up_) return absl::OkStatus();
  if (absl::Status told = channel_->Acknowledge(); !told.ok()) return Lose(told);
  return absl::OkStatus();
}

absl::Status VerbsLink::Arm(Wake wake) {
  if (channel_ == nullptr) return absl::OkStatus();  // the door is watched anyway
  if (absl::Status armed = channel_->Arm(wake); !armed.ok()) return up_ ? Lose(armed) : armed;
  return absl::OkStatus();
}

}  // namespace railhead::transport::verbs

namespace railhead::transport {

absl::StatusOr<std::unique_ptr<Link>> OpenVerbsLink(VerbsDevice& device, std::shared_ptr<Hall> hall,
                                                    absl::string_view peer_hall,
                                                    absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<Door>> door = Door::Open(std::move(hall), peer_hall, peer);
  if (!door.ok()) return door.status();
  return verbs::VerbsLink::Create(device.port(), device.memory(), *std::move(door), peer);
}

}  // namespace railhead::transport
