// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/door/door.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// A network that comes back lets the next attempt through at once, but an attempt made before only
// with its kernel's first repeat, after a second: short attempts find it sooner.
constexpr absl::Duration kBetweenAttempts = absl::Milliseconds(100);
constexpr absl::Duration kConnectPatience = absl::Milliseconds(500);
// The peer may be slow to answer, since it answers when it polls.
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);

// A greeting fits into the empty buffer of a new connection.
absl::Status SendGreeting(int fd, absl::string_view greeting) {
  const ssize_t sent = ::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(greeting.size())) return absl::OkStatus();
  return sent < 0 ? net::ErrnoError("greet", errno)
                  : absl::UnavailableError("greet: the connection takes nothing");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Door>> Door::Open(std::shared_ptr<Hall> hall,
                                                 absl::string_view peer) {
  net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  return std::unique_ptr<Door>(new Door(std::move(hall), std::move(epoll), std::string(peer)));
}

Door::Door(std::shared_ptr<Hall> hall, net::Fd epoll, std::string peer)
    : hall_(std::move(hall)), epoll_(std::move(epoll)), peer_(std::move(peer)) {}

absl::Status Door::SetPeer(absl::string_view address) {
  absl::StatusOr<Hall::Place> place = Hall::ParsePlace(address);
  if (!place.ok()) return place.status();
  if (place->token == hall_->own().token) {
    return absl::InvalidArgumentError("the peer's TCP address is this rank's own");
  }
  remote_ = *std::move(place);
  return absl::OkStatus();
}

std::string Door::Name() const {
  return absl::StrCat(net::HostPort(hall_->own().ip, hall_->own().port), " - ",
                      net::HostPort(remote_.ip, remote_.port));
}

absl::StatusOr<net::Fd> Door::Advance(absl::Time now) {
  if (visitor_.valid()) return std::exchange(visitor_, net::Fd());
  return dials() ? Dial(now) : Await(now);
}

absl::Status Door::Call(absl::Time now) {
  if (!dialed_.valid()) {
    next_attempt_ = now + kBetweenAttempts;
    absl::StatusOr<net::Fd> dialed = net::StartDial(remote_.ip, remote_.port, hall_->own().ip);
    if (!dialed.ok()) return dialed.status();
    dialed_ = *std::move(dialed);
    greeted_ = false;
    answer_.clear();
    give_up_ = now + kConnectPatience;
    if (absl::Status watched = Watch(EPOLL_CTL_ADD, EPOLLOUT); !watched.ok()) return watched;
  }
  pollfd entry{dialed_.get(), POLLOUT, 0};
  if (greeted_ || ::poll(&entry, 1, 0) <= 0) return absl::OkStatus();
  greeted_ = true;
  give_up_ = now + kAnswerPatience;
  absl::Status called = net::FinishDial(dialed_.get(), remote_.ip, remote_.port);
  if (called.ok()) called = SendGreeting(dialed_.get(), Mine());
  if (called.ok()) called = Watch(EPOLL_CTL_MOD, EPOLLIN);
  return called;
}

absl::StatusOr<net::Fd> Door::Dial(absl::Time now) {
  if (!dialed_.valid() && now < next_attempt_) return net::Fd();
  absl::Status failure = Call(now);
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

void Door::Knock(absl::Time now) {
  if (!dialed_.valid() && now < next_attempt_) return;
  // What stands at the door stays there until it is seen, or too old.
  if (!Call(now).ok() || now >= give_up_) dialed_.Reset();
}

bool Door::PeerLeft(absl::Time now) {
  if (dials()) {
    hall_->LookRound(now);
    return hall_->Has(remote_.token) && hall_->Take(remote_.token).valid();
  }
  // The door may fail without harm to the connection that there is.
  absl::StatusOr<net::Fd> visitor = Await(now);
  if (visitor.ok() && visitor->valid()) visitor_ = *std::move(visitor);
  return visitor_.valid();
}

absl::StatusOr<net::Fd> Door::Greet() {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(dialed_.get(), GreetingSize() - answer_.size(), &answer_);
  if (!open.ok()) return open.status();
  if (answer_ == Greeting(remote_.token, hall_->own().token)) {
    // It belongs to the link now, and so do its events.
    if (absl::Status left = Watch(EPOLL_CTL_DEL, 0); !left.ok()) return left;
    return std::exchange(dialed_, net::Fd());
  }
  if (answer_.size() == GreetingSize()) {
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
  const absl::Status admitted = hall_->Admit(now);
  net::Fd found = hall_->Take(remote_.token);
  if (!found.valid()) return admitted.ok() ? absl::StatusOr<net::Fd>(net::Fd()) : admitted;
  dialed_.Reset();  // a knock that has been heard
  if (absl::Status answered = SendGreeting(found.get(), Mine()); !answered.ok()) return answered;
  return found;
}

std::string Door::Mine() const { return Greeting(hall_->own().token, remote_.token); }

absl::Status Door::Watch(int operation, uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (::epoll_ctl(epoll_.get(), operation, dialed_.get(), &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace railhead::transport
