// SPDX-License-Identifier: Apache-2.0
//
// Connection setup of a verbs link, given a socket to the peer:
//
//     +------------+   both offers    +-----------+   both are ready   +----------+
//     | exchanging | ---------------> | connected | -----------------> | greeting | ---> a channel
//     +------------+                  +-----------+                    +----------+
//
// Each side sends over the socket, signed, what it has prepared (offer_wire.h), connects its queue
// pairs to those of the peer, and reports that it is ready; then a greeting crosses the rail
// itself. Each connection begins with new queue pairs on both sides, with counters at their
// beginning. Losing one destroys its queue pairs, so from then on nothing arrives, no slot is
// written, and nothing of the user's memory is read.
#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/recovering_link.h"
#include "runtime/transport/verbs/channel.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/offer.h"
#include "runtime/transport/verbs/offer_wire.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::transport::verbs {
namespace {

// The peer may be slow to answer, since it answers when it polls.
constexpr absl::Duration kExchangePatience = absl::Seconds(1);
// A packet of the greeting may be lost and repeated after the queue pair's timeout.
constexpr absl::Duration kGreetingPatience = absl::Seconds(2);

// All messages of the exchange fit into the empty buffer of a new connection.
absl::Status Say(int fd, absl::string_view bytes) {
  return net::SendAll(fd, bytes, absl::InfinitePast());
}

class ChannelMaker final : public WireMaker {
 public:
  // `peer` is its name in errors.
  static absl::StatusOr<std::unique_ptr<WireMaker>> Create(std::shared_ptr<const DevicePort> port,
                                                           std::shared_ptr<UserMemory> memory,
                                                           absl::string_view peer) {
    // All links of the device wait for its events.
    net::Fd events(::fcntl(port->event_fd(), F_DUPFD_CLOEXEC, 0));
    if (!events.valid()) return net::ErrnoError("fcntl", errno);
    return std::unique_ptr<WireMaker>(
        new ChannelMaker(std::move(port), std::move(memory), peer, std::move(events)));
  }
  // The queue pairs go before the memory that they use.
  ~ChannelMaker() override { GiveUp(); }

  size_t max_payload() const override { return kSlotPayload; }
  bool polls_in_memory() const override { return true; }
  absl::Time Now() const override { return port_->Now(); }
  absl::Status At(const absl::Status& status) const override {
    const std::string where = absl::StrCat(port_->name(), ", peer ", peer_);
    if (absl::StartsWith(status.message(), where)) return status;
    return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
  }
  int event_fd() const override { return events_.get(); }
  bool HasNews() override {
    port_->LookAtEvents();
    return std::exchange(ups_, port_->ups()) != port_->ups();
  }

  absl::Status Begin(Line line, const WireOwner& owner, absl::Time now) override {
    GiveUp();
    owner_ = owner;
    send_key_ = std::move(line.keys.send);
    peers_.emplace(std::move(line.keys.receive));
    give_up_ = now + kExchangePatience;
    if (absl::Status prepared = Prepare(); !prepared.ok()) return prepared;
    const std::string offer = SignedOffer(send_key_, offer_->Address());
    if (absl::Status said = Say(line.fd.get(), offer); !said.ok()) return said;
    socket_ = std::move(line.fd);
    return owner_.waits->Watch(socket_.get(), EPOLLIN);
  }
  bool begun() const override { return socket_.valid() || channel_ != nullptr; }
  void GiveUp() override {
    channel_.reset();
    offer_.reset();
    CloseSocket();
  }
  absl::StatusOr<std::unique_ptr<Wire>> Advance(absl::Time now) override {
    if (socket_.valid()) {
      if (absl::Status exchanged = Exchange(now); !exchanged.ok()) return exchanged;
    }
    if (socket_.valid()) return nullptr;
    const absl::StatusOr<bool> greeted = channel_->Greet();
    if (!greeted.ok()) return greeted.status();
    return *greeted ? std::move(channel_) : nullptr;
  }
  void Answer() override {
    port_->LookAtEvents();
    if (channel_ != nullptr) channel_->Answer();
  }
  absl::Status Arm(Wake wake) override {
    return channel_ != nullptr ? channel_->Arm(wake) : absl::OkStatus();
  }

 private:
  void CloseSocket() {
    if (socket_.valid()) owner_.waits->Watch(socket_.get(), 0).IgnoreError();
    socket_.Reset();
  }
  ChannelMaker(std::shared_ptr<const DevicePort> port, std::shared_ptr<UserMemory> memory,
               absl::string_view peer, net::Fd events)
      : port_(std::move(port)),
        memory_(std::move(memory)),
        peer_(peer),
        events_(std::move(events)) {}

  absl::Status Prepare();
  // Makes one attempt, with the memory that may be pinned now.
  absl::Status MakeOffer();
  absl::Status Exchange(absl::Time now);
  absl::Status Accept(absl::string_view address);

  const std::shared_ptr<const DevicePort> port_;
  const std::shared_ptr<UserMemory> memory_;
  const std::string peer_;
  const net::Fd events_;  // of the port
  uint64_t ups_ = 0;      // of the port, seen by HasNews

  std::optional<Rings> rings_;  // from the first offer on
  WireOwner owner_;
  std::optional<Offer> offer_;        // that the peer has not answered yet
  std::unique_ptr<Channel> channel_;  // that is not greeted yet
  net::Fd socket_;                    // until both sides are ready
  std::string send_key_;              // of the socket
  std::optional<OfferReader> peers_;  // what comes over it
  absl::Time give_up_;
};

absl::Status ChannelMaker::Prepare() {
  absl::Status made = MakeOffer();
  if (!absl::IsResourceExhausted(made)) return made;
  memory_->MakeRoom();
  made = MakeOffer();
  // Adapters run out of queue pairs, too.
  if (!made.ok()) memory_->TryAgain();
  return made;
}

absl::Status ChannelMaker::MakeOffer() {
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

// Receives and accepts the peer's offer, and waits until the peer has accepted this side's.
absl::Status ChannelMaker::Exchange(absl::Time now) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(socket_.get(), peers_->room(), peers_->buffer());
  if (!open.ok()) return open.status();
  if (channel_ == nullptr) {
    const absl::StatusOr<std::string> address = peers_->Offer();
    if (!address.ok()) return address.status();
    if (!address->empty()) {
      if (absl::Status accepted = Accept(*address); !accepted.ok()) return accepted;
    }
  }
  if (channel_ != nullptr) {
    const absl::StatusOr<bool> ready = peers_->Ready();
    if (!ready.ok()) return ready.status();
    if (*ready) {
      CloseSocket();
      return absl::OkStatus();
    }
  }
  if (!*open) return absl::UnavailableError("the peer gave up");
  if (now >= give_up_) {
    return absl::DeadlineExceededError("the peer did not send its connection data in time");
  }
  return absl::OkStatus();
}

absl::Status ChannelMaker::Accept(absl::string_view address) {
  Offer offer = *std::exchange(offer_, std::nullopt);
  absl::StatusOr<std::unique_ptr<Channel>> channel =
      std::move(offer).Accept(address, peer_, port_->Now() + kGreetingPatience, *owner_.stats);
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  const absl::Status watched = channel_->WaitIn(*owner_.waits);
  return watched.ok() ? Say(socket_.get(), SignedReady(send_key_)) : watched;
}

}  // namespace
}  // namespace railhead::transport::verbs

namespace railhead::transport {

absl::StatusOr<std::unique_ptr<Link>> OpenVerbsLink(VerbsDevice& device,
                                                    std::shared_ptr<Acceptor> acceptor,
                                                    Locator peer_acceptor, absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<Reconnector>> reconnector =
      Reconnector::Open(std::move(acceptor), std::move(peer_acceptor), peer);
  if (!reconnector.ok()) return reconnector.status();
  absl::StatusOr<std::unique_ptr<WireMaker>> maker =
      verbs::ChannelMaker::Create(device.port(), device.memory(), peer);
  if (!maker.ok()) return maker.status();
  return RecoveringLink::Create(*std::move(reconnector), *std::move(maker));
}

}  // namespace railhead::transport
