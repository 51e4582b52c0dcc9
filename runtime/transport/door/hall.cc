// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/door/hall.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// A token is random, so that nobody can guess it, and ends with the rank.
constexpr size_t kRandomSize = 12;
constexpr size_t kTokenSize = kRandomSize + sizeof(uint32_t);
constexpr absl::string_view kGreeting = "RHT3";

// How long a connection may stay without a whole greeting, and how many may do so at once.
constexpr absl::Duration kVisitorsPatience = absl::Seconds(5);
constexpr size_t kMostStrangers = 16;

// How long those who come are not looked at when they cannot be let in.
constexpr absl::Duration kClosedPause = absl::Milliseconds(100);

// For those who never sleep: others are woken when somebody comes.
constexpr absl::Duration kLookPause = absl::Milliseconds(100);

}  // namespace

std::string Greeting(absl::string_view from_token, absl::string_view to_token) {
  return absl::StrCat(kGreeting, from_token, to_token);
}

size_t GreetingSize() { return kGreeting.size() + 2 * kTokenSize; }

absl::StatusOr<std::shared_ptr<Hall>> Hall::Open(const net::IpAddress& local, size_t peers,
                                                 uint32_t rank) {
  absl::StatusOr<net::Fd> listener = net::Listen(local, 0);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok()) return bound.status();
  std::array<char, kRandomSize> random;
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return net::ErrnoError("getrandom", errno);
  }
  WireWriter token;
  token.Raw(absl::string_view(random.data(), random.size()));
  token.U32(rank);
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::shared_ptr<Hall> hall(new Hall(*std::move(listener), std::move(epoll),
                                      Place{local, bound->port, token.Take()},
                                      peers + kMostStrangers));
  if (absl::Status watched = hall->Watch(hall->listener_); !watched.ok()) return watched;
  return hall;
}

Hall::Hall(net::Fd listener, net::Fd epoll, Place own, size_t most)
    : listener_(std::move(listener)), epoll_(std::move(epoll)), own_(std::move(own)), most_(most) {}

std::string Hall::Address() const {
  WireWriter writer;
  writer.String(own_.ip.Bytes());
  writer.U16(own_.port);
  writer.Raw(own_.token);
  return writer.Take();
}

absl::StatusOr<Hall::Place> Hall::ParsePlace(absl::string_view address) {
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

absl::Status Hall::Admit(absl::Time now) {
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
    // Who has greeted and left has only given up.
    if (visitor->greeting.size() < GreetingSize()) ++strangers_;
    visitor = visitors_.erase(visitor);
  }
  return absl::OkStatus();
}

void Hall::LookRound(absl::Time now) {
  if (now < next_look_) return;
  next_look_ = now + kLookPause;
  Admit(now).IgnoreError();
}

// Takes what a visitor says. Returns whether it may stay.
bool Hall::Hear(Visitor& visitor, absl::Time now) {
  // One byte more than a greeting: the peer says nothing further before it is answered, and an end
  // behind the greeting shows that it has given up.
  const absl::StatusOr<bool> open = net::ReceiveSome(
      visitor.fd.get(), GreetingSize() + 1 - visitor.greeting.size(), &visitor.greeting);
  if (!open.ok() || !*open) return false;
  const absl::string_view said = visitor.greeting;
  constexpr size_t kTo = kGreeting.size() + kTokenSize;
  const bool fits = said.size() <= GreetingSize() &&
                    absl::StartsWith(kGreeting, said.substr(0, kGreeting.size())) &&
                    (said.size() <= kTo || absl::StartsWith(own_.token, said.substr(kTo)));
  if (!fits) {
    visitor.greeting.clear();
    return false;
  }
  return said.size() == GreetingSize() || now < visitor.patience;
}

net::Fd Hall::Take(absl::string_view token) {
  const std::string expected = Greeting(token, own_.token);
  net::Fd found;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (visitor->greeting != expected) {
      ++visitor;
      continue;
    }
    found = std::move(visitor->fd);
    visitor = visitors_.erase(visitor);
  }
  // It belongs to a link now, and so do its events.
  if (found.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found.get(), nullptr);
  return found;
}

bool Hall::Has(absl::string_view token) const {
  return !visitors_.empty() &&
         std::any_of(visitors_.begin(), visitors_.end(),
                     [greeting = Greeting(token, own_.token)](const Visitor& visitor) {
                       return visitor.greeting == greeting;
                     });
}

std::vector<uint32_t> Hall::Callers() const {
  std::vector<uint32_t> ranks;
  for (const Visitor& visitor : visitors_) {
    if (visitor.greeting.size() != GreetingSize()) continue;
    const absl::string_view greeting = visitor.greeting;
    ranks.push_back(WireReader(greeting.substr(kGreeting.size() + kRandomSize)).U32());
  }
  return ranks;
}

absl::Status Hall::Watch(const net::Fd& fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace railhead::transport
