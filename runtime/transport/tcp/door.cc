// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/door.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

constexpr size_t kTokenSize = 16;
constexpr absl::string_view kGreeting = "RHT2";
constexpr size_t kGreetingSize = kGreeting.size() + 2 * kTokenSize;

// How long a connection may stay without a whole greeting, and how many may do so at once.
constexpr absl::Duration kVisitorsPatience = absl::Seconds(5);
constexpr size_t kMostVisitors = 16;

// A network that comes back lets the next attempt through at once, but an attempt made before only
// with its kernel's first repeat, after a second: short attempts find it sooner.
constexpr absl::Duration kBetweenAttempts = absl::Milliseconds(100);
constexpr absl::Duration kConnectPatience = absl::Milliseconds(500);
// The peer may be slow to answer, since it answers when it polls.
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);

// "RHT2", the sender's token, the receiver's token.
std::string Greeting(absl::string_view from, absl::string_view to) {
  return absl::StrCat(kGreeting, from, to);
}

// A greeting fits into the empty buffer of a new connection.
absl::Status SendGreeting(int fd, absl::string_view greeting) {
  const ssize_t sent = ::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(greeting.size())) return absl::OkStatus();
  return sent < 0 ? net::ErrnoError("greet", errno)
                  : absl::UnavailableError("greet: the connection takes nothing");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Door>> Door::Open(const net::IpAddress& local,
                                                 absl::string_view peer) {
  absl::StatusOr<net::Fd> listener = net::Listen(local, 0);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok()) return bound.status();
  std::array<char, kTokenSize> token;
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return net::ErrnoError("getrandom", errno);
  }
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  std::unique_ptr<Door> door(new Door(
      *std::move(listener), std::move(epoll),
      Place{local, bound->port, std::string(token.data(), token.size())}, std::string(peer)));
  if (absl::Status watched = door->Watch(door->listener_, EPOLLIN); !watched.ok()) return watched;
  return door;
}

Door::Door(net::Fd listener, net::Fd epoll, Place own, std::string peer)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      own_(std::move(own)),
      peer_(std::move(peer)) {}

std::string Door::Address() const {
  WireWriter writer;
  writer.String(own_.ip.Bytes());
  writer.U16(own_.port);
  writer.Raw(own_.token);
  return writer.Take();
}

absl::Status Door::SetPeer(absl::string_view address) {
  WireReader reader(address);
  const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(reader.String(16));
  Place place;
  place.port = reader.U16();
  place.token = std::string(reader.Raw(kTokenSize));
  if (!reader.Complete() || !ip.ok() || place.port == 0) {
    return absl::InvalidArgumentError("the peer's TCP address is malformed");
  }
  if (place.token == own_.token) {
    return absl::InvalidArgumentError("the peer's TCP address is this rank's own");
  }
  place.ip = *ip;
  remote_ = std::move(place);
  if (dials()) listener_.Reset();  // nobody calls at the side that dials
  return absl::OkStatus();
}

std::string Door::Name() const {
  return absl::StrCat(net::HostPort(own_.ip, own_.port), " - ",
                      net::HostPort(remote_.ip, remote_.port));
}

absl::StatusOr<net::Fd> Door::Advance(absl::Time now) {
  absl::StatusOr<net::Fd> connection = dials() ? Dial(now) : Await(now);
  if (connection.ok() && connection->valid()) {
    // It belongs to the link now, and so do its events.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->get(), nullptr);
  }
  return connection;
}

absl::StatusOr<net::Fd> Door::Dial(absl::Time now) {
  absl::Status failure;
  if (!dialed_.valid()) {
    if (now < next_attempt_) return net::Fd();
    next_attempt_ = now + kBetweenAttempts;
    absl::StatusOr<net::Fd> dialed = net::StartDial(remote_.ip, remote_.port, own_.ip);
    if (!dialed.ok()) return dialed.status();
    dialed_ = *std::move(dialed);
    greeted_ = false;
    answer_.clear();
    give_up_ = now + kConnectPatience;
    failure = Watch(dialed_, EPOLLOUT);
  }
  pollfd entry{dialed_.get(), POLLOUT, 0};
  if (failure.ok() && !greeted_ && ::poll(&entry, 1, 0) > 0) {
    greeted_ = true;
    give_up_ = now + kAnswerPatience;
    failure = net::FinishDial(dialed_.get(), remote_.ip, remote_.port);
    if (failure.ok()) failure = SendGreeting(dialed_.get(), Greeting(own_.token, remote_.token));
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, dialed_.get(), &event);
  }
  if (failure.ok() && greeted_) {
    absl::StatusOr<net::Fd> connection = Greet();
    if (connection.ok() && connection->valid()) return connection;
    failure = connection.status();
  }
  if (failure.ok() && now >= give_up_) {
    failure = absl::DeadlineExceededError(
        absl::StrCat(net::HostPort(remote_.ip, remote_.port),
                     greeted_ ? " took the connection but does not greet" : " does not answer"));
  }
  if (failure.ok()) return net::Fd();
  dialed_.Reset();
  return absl::Status(failure.code(), absl::StrCat(peer_, ": ", failure.message()));
}

absl::StatusOr<net::Fd> Door::Greet() {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(dialed_.get(), kGreetingSize - answer_.size(), &answer_);
  if (!open.ok()) return open.status();
  if (answer_ == Greeting(remote_.token, own_.token)) return std::exchange(dialed_, net::Fd());
  if (answer_.size() == kGreetingSize) {
    return absl::UnavailableError(absl::StrCat(
        "whoever listens at ", net::HostPort(remote_.ip, remote_.port), " is somebody else"));
  }
  if (!*open) {
    return absl::UnavailableError(absl::StrCat(net::HostPort(remote_.ip, remote_.port),
                                               " took the connection but closed it"));
  }
  return net::Fd();
}

absl::StatusOr<net::Fd> Door::Await(absl::Time now) {
  if (absl::Status admitted = Admit(now); !admitted.ok()) return admitted;
  const std::string expected = Greeting(remote_.token, own_.token);
  net::Fd found;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const bool stays = Hear(*visitor, now);
    if (stays && visitor->greeting == expected) {
      // The latest: whoever dials again has given up what it dialed before.
      found = std::move(visitor->fd);
    } else if (stays) {
      ++visitor;
      continue;
    } else if (visitor->greeting != expected) {
      ++strangers_;
    }
    visitor = visitors_.erase(visitor);
  }
  if (found.valid()) {
    absl::Status answered = SendGreeting(found.get(), Greeting(own_.token, remote_.token));
    if (!answered.ok()) return answered;
  }
  return found;
}

absl::Status Door::Admit(absl::Time now) {
  for (size_t i = 0; i < kMostVisitors; ++i) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
    if (!fd.ok()) return fd.status();
    if (!fd->valid()) break;
    if (visitors_.size() == kMostVisitors) {
      visitors_.pop_front();
      ++strangers_;
    }
    if (absl::Status watched = Watch(*fd, EPOLLIN); !watched.ok()) return watched;
    visitors_.push_back({*std::move(fd), "", now + kVisitorsPatience});
  }
  return absl::OkStatus();
}

// Takes what a visitor says. Returns whether it may go on.
bool Door::Hear(Visitor& visitor, absl::Time now) {
  // One byte more than a greeting: the peer says nothing further before it is answered, and an end
  // behind the greeting shows that it has given up.
  const absl::StatusOr<bool> open = net::ReceiveSome(
      visitor.fd.get(), kGreetingSize + 1 - visitor.greeting.size(), &visitor.greeting);
  return open.ok() && *open && now < visitor.patience &&
         absl::StartsWith(Greeting(remote_.token, own_.token), visitor.greeting);
}

absl::Status Door::Watch(const net::Fd& fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace railhead::transport
