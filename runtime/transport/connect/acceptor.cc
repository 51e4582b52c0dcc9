// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/acceptor.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/random.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// How long a connection may stay without a whole Hello, and how many may do so at once.
constexpr absl::Duration kVisitorsPatience = absl::Seconds(5);
constexpr size_t kMostStrangers = 16;

// How long those who come are not looked at when they cannot be let in.
constexpr absl::Duration kClosedPause = absl::Milliseconds(100);

// For those who never sleep: others are woken when somebody comes.
constexpr absl::Duration kLookPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::shared_ptr<Acceptor>> Acceptor::Open(const net::IpAddress& local, size_t peers,
                                                         uint32_t rank, RailKey key) {
  absl::StatusOr<net::Fd> listener = net::Listen(local, 0);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok()) return bound.status();
  const absl::StatusOr<std::string> random = RandomBytes(kTokenRandom);
  if (!random.ok()) return random.status();
  WireWriter token;
  token.Raw(*random);
  token.U32(rank);
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::shared_ptr<Acceptor> acceptor(new Acceptor(*std::move(listener), std::move(epoll),
                                                  Place{local, bound->port, token.Take()},
                                                  std::move(key), peers + kMostStrangers));
  if (absl::Status watched = acceptor->Watch(acceptor->listener_); !watched.ok()) return watched;
  return acceptor;
}

Acceptor::Acceptor(net::Fd listener, net::Fd epoll, Place own, RailKey key, size_t most)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      own_(std::move(own)),
      key_(std::move(key)),
      most_(most) {}

std::string Acceptor::Address() const {
  WireWriter writer;
  writer.String(own_.ip.Bytes());
  writer.U16(own_.port);
  writer.Raw(own_.token);
  return writer.Take();
}

absl::StatusOr<Acceptor::Place> Acceptor::ParsePlace(absl::string_view address) {
  WireReader reader(address);
  const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(reader.String(16));
  Place place;
  place.port = reader.U16();
  place.token = std::string(reader.Raw(kTokenSize));
  if (!reader.Complete() || !ip.ok() || place.port == 0) {
    return absl::InvalidArgumentError("the peer's TCP address is malformed");
  }
  place.ip = *ip;
  return place;
}

absl::Status Acceptor::Admit(absl::Time now) {
  if (closed_until_ <= now) {
    closed_until_ = absl::InfiniteFuture();
    if (absl::Status watched = Watch(listener_); !watched.ok()) return watched;
  }
  for (size_t i = 0; i < most_; ++i) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
    if (!fd.ok()) {
      // Without descriptors or memory to take it, the connection goes on waiting, and would wake
      // whoever sleeps on it again and again.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      closed_until_ = now + kClosedPause;
      return fd.status();
    }
    if (!fd->valid()) break;
    if (visitors_.size() == most_) {
      visitors_.pop_front();
      ++strangers_;
    }
    if (absl::Status watched = Watch(*fd); !watched.ok()) return watched;
    visitors_.push_back({*std::move(fd), "", now + kVisitorsPatience});
  }
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (Hear(*visitor, now)) {
      ++visitor;
      continue;
    }
    // A rank that has left has only given up.
    if (visitor->from.empty()) ++strangers_;
    visitor = visitors_.erase(visitor);
  }
  return absl::OkStatus();
}

void Acceptor::LookRound(absl::Time now) {
  if (now < next_look_) return;
  next_look_ = now + kLookPause;
  Admit(now).IgnoreError();
}

// Takes what a visitor says. Returns whether it may stay.
bool Acceptor::Hear(Visitor& visitor, absl::Time now) {
  // One byte more than a Hello: the peer says nothing further before it is answered, and an end
  // behind it shows that it has given up.
  const absl::StatusOr<bool> open =
      net::ReceiveSome(visitor.fd.get(), RailHelloSize() + 1 - visitor.said.size(), &visitor.said);
  const bool first = visitor.from.empty() && visitor.said.size() == RailHelloSize();
  if (first) Believe(visitor);
  if (!open.ok() || !*open) return false;
  if (!MayBeRailHello(visitor.said, own_.token)) {
    visitor.from.clear();
    return false;
  }
  return !visitor.from.empty() || (!first && now < visitor.patience);
}

// Sees who it is.
void Acceptor::Believe(Visitor& visitor) {
  const std::optional<RailHello> hello = ParseRailHello(key_, visitor.said);
  if (!hello.has_value() || hello->to != own_.token) return;
  // Whoever has seen an earlier one can say it again.
  uint64_t& last = heard_[hello->from];
  if (hello->number <= last) return;
  last = hello->number;
  visitor.from = hello->from;
}

absl::StatusOr<std::string> Acceptor::NewHello(absl::string_view to) {
  const absl::StatusOr<std::string> nonce = RandomBytes(kRailNonceSize);
  if (!nonce.ok()) return nonce.status();
  return EncodeRailHello(key_, {own_.token, std::string(to), ++hellos_, *nonce});
}

Acceptor::Caller Acceptor::Take(absl::string_view token) {
  Caller found;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (visitor->from != token) {
      ++visitor;
      continue;
    }
    found = {std::move(visitor->fd), std::move(visitor->said)};
    visitor = visitors_.erase(visitor);
  }
  // It belongs to a link now, and so do its events.
  if (found.fd.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found.fd.get(), nullptr);
  return found;
}

bool Acceptor::Has(absl::string_view token) const {
  return std::any_of(visitors_.begin(), visitors_.end(),
                     [token](const Visitor& visitor) { return visitor.from == token; });
}

std::vector<uint32_t> Acceptor::Callers() const {
  std::vector<uint32_t> ranks;
  for (const Visitor& visitor : visitors_) {
    if (visitor.from.empty()) continue;
    ranks.push_back(WireReader(absl::string_view(visitor.from).substr(kTokenRandom)).U32());
  }
  return ranks;
}

absl::Status Acceptor::Watch(const net::Fd& fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace railhead::transport
