// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/rail_listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/one_per_process.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// Maximum time of a connection without a whole Hello, and the maximum number of them at once, in
// addition to the ranks of the largest communicator.
constexpr absl::Duration kVisitorsPatience = absl::Seconds(5);
constexpr size_t kMostStrangers = 16;

// Connections accepted before any of their data is read.
constexpr size_t kMostAtOnce = 64;

// Peers of an ended communicator may still dial it for a moment.
constexpr size_t kMostRemoved = 1024;

// Time for which new connections are ignored after one could not be accepted.
constexpr absl::Duration kClosedPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::shared_ptr<RailListener>> RailListener::Shared(
    const net::IpAddress& local,
    const std::function<std::unique_ptr<RailInterface>()>& make_interface) {
  static OnePerProcess<RailListener> listeners;
  // With its interface, if it is a link-local address.
  sockaddr_storage storage{};
  const socklen_t size = local.ToSockaddr(0, &storage);
  return listeners.Get(
      absl::StrCat(make_interface != nullptr ? "by interface " : "",
                   absl::string_view(reinterpret_cast<const char*>(&storage), size)),
      [&] { return Open(local, make_interface != nullptr ? make_interface() : nullptr); });
}

absl::StatusOr<std::shared_ptr<RailListener>> RailListener::Open(
    const net::IpAddress& local, std::unique_ptr<RailInterface> interface) {
  absl::StatusOr<std::shared_ptr<net::WatchThread>> thread = net::WatchThread::Get();
  if (!thread.ok()) return thread.status();
  std::vector<net::Fd> sockets;
  if (interface != nullptr && interface->binds_listener()) {
    absl::StatusOr<net::ListenerPair> pair = net::ListenByInterface(local, interface->name());
    if (!pair.ok()) return pair.status();
    sockets.push_back(std::move(pair->bound));
    sockets.push_back(std::move(pair->other));
  } else {
    absl::StatusOr<net::Fd> socket = net::ListenOnAbsent(local, 0);
    if (!socket.ok()) return socket.status();
    sockets.push_back(*std::move(socket));
  }
  for (net::Fd& socket : sockets) socket.KeepFromChildren();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(sockets.front().get());
  if (!bound.ok()) return bound.status();
  std::shared_ptr<RailListener> listener(new RailListener(*std::move(thread), std::move(interface),
                                                          local, bound->port, std::move(sockets)));
  listener->thread_->Wake(*listener);
  if (absl::Status watched = listener->WatchListeners(); !watched.ok()) return watched;
  return listener;
}

RailListener::RailListener(std::shared_ptr<net::WatchThread> thread,
                           std::unique_ptr<RailInterface> interface, const net::IpAddress& ip,
                           uint16_t port, std::vector<net::Fd> listeners)
    : thread_(std::move(thread)),
      ip_(ip),
      port_(port),
      interface_(std::move(interface)),
      listeners_(std::move(listeners)) {}

RailListener::~RailListener() {
  stop_ = true;
  thread_->Wake(*this);
  thread_->AwaitEnd(*this);
}

std::optional<absl::Time> RailListener::Turn() {
  if (stop_) return std::nullopt;
  Admit(MonotonicNow()).IgnoreError();
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Time next = closed_until_.value_or(absl::InfiniteFuture());
  for (const Visitor& visitor : visitors_) {
    if (visitor.from.empty()) next = std::min(next, visitor.patience);
  }
  return next;
}

void RailListener::Add(Inbox& inbox) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inboxes_[inbox.token] = &inbox;
  peers_.insert(inbox.peers);
}

void RailListener::Remove(Inbox& inbox) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inboxes_.erase(inbox.token);
  peers_.erase(peers_.find(inbox.peers));
  removed_.push_back(inbox.token);
  if (removed_.size() > kMostRemoved) removed_.pop_front();
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    visitor = visitor->inbox == &inbox ? Erase(visitor) : std::next(visitor);
  }
}

absl::Status RailListener::Admit(absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status accepted = Accept(now);
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (Hear(*visitor, now)) {
      ++visitor;
    } else {
      // A proven rank that has left has only given up.
      visitor = visitor->from.empty() ? Reject(visitor) : Erase(visitor);
    }
  }
  return accepted;
}

absl::Status RailListener::Accept(absl::Time now) {
  if (closed_until_.has_value()) {
    if (now < *closed_until_) return absl::OkStatus();
    closed_until_ = now + kClosedPause;
    if (absl::Status watched = WatchListeners(); !watched.ok()) return watched;
    closed_until_.reset();
  }
  for (const net::Fd& listener : listeners_) {
    absl::Status accepted = AcceptFrom(listener, now);
    if (accepted.ok()) continue;
    // Without descriptors or memory to accept it, the connection would wake the thread again and
    // again.
    IgnoreListeners();
    closed_until_ = now + kClosedPause;
    thread_->Wake(*this);
    return accepted;
  }
  return absl::OkStatus();
}

absl::Status RailListener::AcceptFrom(const net::Fd& listener, absl::Time now) {
  for (size_t i = 0; i < kMostAtOnce; ++i) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener.get());
    if (!fd.ok()) return fd.status();
    if (!fd->valid()) break;
    if (interface_ != nullptr && !interface_->Keep(fd->get(), now)) continue;
    LimitUnproven();
    if (absl::Status watched = Watch(*fd); !watched.ok()) return watched;
    visitors_.push_back({*std::move(fd), "", now + kVisitorsPatience});
  }
  return absl::OkStatus();
}

void RailListener::LimitUnproven() {
  const size_t most = kMostStrangers + (peers_.empty() ? 0 : *peers_.rbegin());
  const auto unproven = [](const Visitor& visitor) { return visitor.from.empty(); };
  const auto count = std::count_if(visitors_.begin(), visitors_.end(), unproven);
  if (static_cast<size_t>(count) < most) return;
  Reject(std::find_if(visitors_.begin(), visitors_.end(), unproven));
}

// Reads a client's data. Returns false if its connection is to be closed.
bool RailListener::Hear(Visitor& visitor, absl::Time now) {
  // One byte more than a Hello: the peer sends nothing further before the answer, and an end of the
  // connection shows that it has given up.
  const absl::StatusOr<bool> open =
      net::ReceiveSome(visitor.fd.get(), RailHelloSize() + 1 - visitor.said.size(), &visitor.said);
  const std::optional<absl::string_view> target = RailHelloTarget(visitor.said);
  if (visitor.inbox == nullptr && target.has_value()) {
    const auto found = inboxes_.find(*target);
    if (found != inboxes_.end()) visitor.inbox = found->second;
  }
  const bool whole = visitor.said.size() == RailHelloSize();
  if (visitor.from.empty() && whole && !Believe(visitor)) return false;
  if (!open.ok() || !*open) return false;
  if (!MayBeRailHello(visitor.said)) {
    if (!visitor.from.empty()) --visitor.inbox->waiting;
    visitor.from.clear();
    return false;
  }
  if (!visitor.from.empty()) return true;
  return (!target.has_value() || visitor.inbox != nullptr) && now < visitor.patience;
}

// Checks a whole Hello. Returns true if it is of a rank.
bool RailListener::Believe(Visitor& visitor) const {
  if (visitor.inbox == nullptr) return false;
  Inbox& inbox = *visitor.inbox;
  const std::optional<RailHello> hello = ParseRailHello(inbox.key, visitor.said);
  if (!hello.has_value()) return false;
  // A process that has seen an earlier Hello can repeat it.
  uint64_t& last = inbox.heard[hello->from];
  if (hello->number <= last) return false;
  last = hello->number;
  visitor.from = hello->from;
  ++inbox.waiting;
  if (inbox.wake != nullptr) inbox.wake->Signal();
  return true;
}

RailListener::Visitors::iterator RailListener::Erase(Visitors::iterator visitor) {
  if (!visitor->from.empty()) --visitor->inbox->waiting;
  return visitors_.erase(visitor);
}

RailListener::Visitors::iterator RailListener::Reject(Visitors::iterator visitor) {
  const std::optional<absl::string_view> target = RailHelloTarget(visitor->said);
  if (visitor->inbox != nullptr) {
    ++visitor->inbox->strangers;
  } else if (!target.has_value() ||
             std::find(removed_.begin(), removed_.end(), *target) == removed_.end()) {
    ++strangers_;
  }
  return Erase(visitor);
}

RailListener::Caller RailListener::Take(const Inbox& inbox, absl::string_view token) {
  Caller found;
  if (inbox.waiting == 0) return found;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (visitor->inbox != &inbox || visitor->from != token) {
      ++visitor;
      continue;
    }
    found = {std::move(visitor->fd), std::move(visitor->said)};
    visitor = Erase(visitor);
  }
  // It belongs to a link now, and so do its events.
  if (found.fd.valid()) ::epoll_ctl(thread_->epoll(), EPOLL_CTL_DEL, found.fd.get(), nullptr);
  return found;
}

bool RailListener::Has(const Inbox& inbox, absl::string_view token) const {
  if (inbox.waiting == 0) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(visitors_.begin(), visitors_.end(), [&](const Visitor& visitor) {
    return visitor.inbox == &inbox && visitor.from == token;
  });
}

std::vector<std::string> RailListener::Callers(const Inbox& inbox) const {
  std::vector<std::string> tokens;
  if (inbox.waiting == 0) return tokens;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Visitor& visitor : visitors_) {
    if (visitor.inbox == &inbox && !visitor.from.empty()) tokens.push_back(visitor.from);
  }
  return tokens;
}

uint64_t RailListener::TakeStrangers(Inbox& inbox) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(inbox.strangers, 0) + std::exchange(strangers_, 0);
}

absl::Status RailListener::WatchListeners() {
  for (const net::Fd& listener : listeners_) {
    if (absl::Status watched = Watch(listener); !watched.ok()) {
      IgnoreListeners();
      return watched;
    }
  }
  return absl::OkStatus();
}

void RailListener::IgnoreListeners() {
  for (const net::Fd& listener : listeners_) {
    ::epoll_ctl(thread_->epoll(), EPOLL_CTL_DEL, listener.get(), nullptr);
  }
}

absl::Status RailListener::Watch(const net::Fd& fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = static_cast<net::WatchThread::Client*>(this);
  if (::epoll_ctl(thread_->epoll(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

}  // namespace railhead::transport
