// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/page_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/metrics/page_request.h"
#include "runtime/net/socket.h"

namespace railhead::metrics {
namespace {

constexpr absl::Duration kAskTime = absl::Seconds(5);
constexpr absl::Duration kReadTime = absl::Seconds(10);
// For the client's part of the end, so that what it has not read yet is not lost.
constexpr absl::Duration kCloseTime = absl::Seconds(1);
// Between two pages, so that a flood of requests costs the job little.
constexpr absl::Duration kPagePause = absl::Milliseconds(50);
// After an error of accept, such as too many open files.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
constexpr size_t kReadAtOnce = 4 << 10;

// Returns an IPv4 address, or the network of an IPv6 address, as one client has all of it.
std::string SourceOf(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &length);
  if (storage.ss_family != AF_INET6) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  const auto* const bytes = reinterpret_cast<const char*>(&v6);
  return IN6_IS_ADDR_V4MAPPED(&v6) != 0 ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

std::string Head(absl::string_view status, size_t length) {
  return absl::StrCat("HTTP/1.1 ", status,
                      "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                      "Content-Length: ",
                      length, "\r\nConnection: close\r\n\r\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(int port,
                                                              std::function<std::string()> make) {
  absl::StatusOr<net::Fd> listener = net::Listen(std::nullopt, static_cast<uint16_t>(port));
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> own = net::LocalAddress(listener->get());
  if (!own.ok()) return own.status();
  net::Fd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return net::ErrnoError("eventfd", errno);
  auto server = std::unique_ptr<PageServer>(
      new PageServer(*std::move(listener), own->port, std::move(stop), std::move(make)));
  absl::StatusOr<std::thread> thread = TryStartThread([raw = server.get()] { raw->Run(); });
  if (!thread.ok()) return thread.status();
  server->thread_ = *std::move(thread);
  return server;
}

PageServer::PageServer(net::Fd listener, int port, net::Fd stop, std::function<std::string()> make)
    : listener_(std::move(listener)), port_(port), stop_(std::move(stop)), make_(std::move(make)) {}

PageServer::~PageServer() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  static_cast<void>(!::write(stop_.get(), &one, sizeof one));
  thread_.join();
}

void PageServer::Run() {
  std::vector<pollfd> entries;
  while (true) {
    absl::Time now = MonotonicNow();
    entries.assign(
        {{stop_.get(), POLLIN, 0},
         {listener_.get(), static_cast<int16_t>(now < no_accept_until_ ? 0 : POLLIN), 0}});
    absl::Time wake = now < no_accept_until_ ? no_accept_until_ : absl::InfiniteFuture();
    for (const Connection& one : connections_) {
      const bool writes = one.state == Connection::State::kReading;
      entries.push_back({one.fd.get(), static_cast<int16_t>(writes ? POLLOUT : POLLIN), 0});
      wake = std::min({wake, one.deadline,
                       one.state == Connection::State::kWaiting ? next_page_ : one.deadline});
    }
    const int timeout = wake == absl::InfiniteFuture() ? -1 : net::PollTimeout(wake);
    if (::poll(entries.data(), entries.size(), timeout) < 0) continue;
    if (entries[0].revents != 0) return;
    now = MonotonicNow();
    size_t entry = 2;
    for (auto one = connections_.begin(); one != connections_.end(); ++entry) {
      // A client that sends a byte now and then does not extend its deadline.
      const bool over =
          now >= one->deadline || (entries[entry].revents != 0 && !Advance(*one, now));
      one = over ? connections_.erase(one) : std::next(one);
    }
    if (entries[1].revents != 0) Welcome(now);
    if (now >= next_page_) ServePage();
  }
}

void PageServer::Welcome(absl::Time now) {
  // Not more at once, so that those who are here have their turn.
  for (size_t i = 0; i < kMostConnections; ++i) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
    if (!fd.ok()) {
      no_accept_until_ = now + kAcceptPause;
      return;
    }
    if (!fd->valid()) return;
    Connection guest;
    guest.source = SourceOf(fd->get());
    guest.fd = *std::move(fd);
    guest.deadline = now + kAskTime;
    // A client that has sent its request already does not count as idle.
    if (!Advance(guest, now)) continue;
    if (connections_.size() == kMostConnections) MakeRoomFor(guest.source);
    connections_.push_back(std::move(guest));
  }
}

void PageServer::MakeRoomFor(const std::string& source) {
  std::map<absl::string_view, size_t> counts;
  for (const Connection& one : connections_) ++counts[one.source];
  // The newcomer counts, so that it does not displace those who have as few.
  ++counts[source];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  // The oldest, those first who have not asked.
  auto victim = connections_.end();
  for (auto one = connections_.begin(); one != connections_.end(); ++one) {
    if (one->source != most->first) continue;
    if (one->state == Connection::State::kAsking || victim == connections_.end()) victim = one;
    if (one->state == Connection::State::kAsking) break;
  }
  if (victim == connections_.end()) victim = connections_.begin();
  connections_.erase(victim);
}

bool PageServer::Advance(Connection& connection, absl::Time now) {
  return connection.state == Connection::State::kReading ? Answer(connection, now)
                                                         : Listen(connection, now);
}

bool PageServer::Listen(Connection& connection, absl::Time now) {
  std::string more;
  const absl::StatusOr<bool> open = net::ReceiveSome(connection.fd.get(), kReadAtOnce, &more);
  if (!open.ok() || !*open) return false;
  if (connection.state != Connection::State::kAsking) return true;
  connection.asked += more;
  switch (ReadPageRequest(connection.asked)) {
    case PageRequest::kIncomplete:
      return true;
    case PageRequest::kHead:
      connection.wants_body = false;
      [[fallthrough]];
    case PageRequest::kPage:
      connection.state = Connection::State::kWaiting;
      connection.deadline = now + kReadTime;
      return true;
    case PageRequest::kNotFound:
      Refuse(connection, "404 Not Found", now);
      break;
    case PageRequest::kNotAllowed:
      Refuse(connection, "405 Method Not Allowed", now);
      break;
    case PageRequest::kMalformed:
      Refuse(connection, "400 Bad Request", now);
      break;
  }
  return Answer(connection, now);
}

void PageServer::Refuse(Connection& connection, absl::string_view status, absl::Time now) {
  connection.head = Head(status, 0);
  connection.body = std::make_shared<const std::string>();
  connection.state = Connection::State::kReading;
  connection.deadline = now + kReadTime;
}

bool PageServer::Answer(Connection& connection, absl::Time now) {
  const size_t head = connection.head.size();
  const size_t all = head + connection.body->size();
  while (connection.sent < all) {
    const absl::string_view rest =
        connection.sent < head ? absl::string_view(connection.head).substr(connection.sent)
                               : absl::string_view(*connection.body).substr(connection.sent - head);
    const ssize_t sent = ::send(connection.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    connection.sent += static_cast<size_t>(sent);
  }
  ::shutdown(connection.fd.get(), SHUT_WR);
  connection.body.reset();
  connection.state = Connection::State::kClosing;
  connection.deadline = now + kCloseTime;
  return true;
}

void PageServer::ServePage() {
  const auto waits = [](const Connection& one) { return one.state == Connection::State::kWaiting; };
  if (std::none_of(connections_.begin(), connections_.end(), waits)) return;
  const auto page = std::make_shared<const std::string>(make_());
  const absl::Time now = MonotonicNow();
  next_page_ = now + kPagePause;
  for (auto one = connections_.begin(); one != connections_.end();) {
    bool open = true;
    if (waits(*one)) {
      one->head = Head("200 OK", page->size());
      one->body = one->wants_body ? page : std::make_shared<const std::string>();
      one->state = Connection::State::kReading;
      one->deadline = now + kReadTime;
      open = Answer(*one, now);
    }
    one = open ? std::next(one) : connections_.erase(one);
  }
}

}  // namespace railhead::metrics
