// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"
#include "runtime/transport/tcp/tcp_link.h"

namespace railhead::transport {
namespace {

constexpr size_t kTokenSize = 16;
constexpr absl::string_view kGreeting = "RHT1";
constexpr size_t kGreetingSize = kGreeting.size() + 2 * kTokenSize;
// How long a connection may stay without a whole greeting, and how many may do so at once.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr size_t kMostVisitors = 16;

struct TcpAddress {
  net::IpAddress ip;
  uint16_t port = 0;
  std::string token;
};

std::string Encode(const TcpAddress& address) {
  WireWriter writer;
  writer.String(address.ip.Bytes());
  writer.U16(address.port);
  writer.Raw(address.token);
  return writer.Take();
}

absl::StatusOr<TcpAddress> Parse(absl::string_view bytes) {
  WireReader reader(bytes);
  const absl::StatusOr<net::IpAddress> ip = net::IpAddress::FromBytes(reader.String(16));
  TcpAddress address;
  address.port = reader.U16();
  address.token = std::string(reader.Raw(kTokenSize));
  if (!reader.Complete() || !ip.ok() || address.port == 0) {
    return absl::InvalidArgumentError("the peer's TCP address is malformed");
  }
  address.ip = *ip;
  return address;
}

// "RHT1", the sender's token, the receiver's token.
std::string Greeting(absl::string_view from, absl::string_view to) {
  return absl::StrCat(kGreeting, from, to);
}

class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(net::Fd listener, TcpAddress address, std::string peer)
      : listener_(std::move(listener)), address_(std::move(address)), peer_(std::move(peer)) {}

  std::string Address() const override { return Encode(address_); }

  absl::StatusOr<std::unique_ptr<Link>> Connect(absl::string_view peer_address,
                                                absl::Time deadline) override {
    const absl::StatusOr<TcpAddress> remote = Parse(peer_address);
    if (!remote.ok()) return remote.status();
    if (remote->token == address_.token) {
      return absl::InvalidArgumentError("the peer's TCP address is this rank's own");
    }
    // Both sides listen, and both know both tokens: the smaller one dials.
    absl::StatusOr<net::Fd> socket =
        address_.token < remote->token ? DialPeer(*remote, deadline) : AwaitPeer(*remote, deadline);
    if (!socket.ok()) return socket.status();
    listener_.Reset();
    return TcpLink::Create(*std::move(socket),
                           absl::StrCat(net::HostPort(address_.ip, address_.port), " - ",
                                        net::HostPort(remote->ip, remote->port)));
  }

 private:
  absl::StatusOr<net::Fd> DialPeer(const TcpAddress& remote, absl::Time deadline) {
    absl::StatusOr<net::Fd> socket = net::Dial(remote.ip, remote.port, address_.ip, deadline);
    if (!socket.ok()) return socket.status();
    absl::Status greeted =
        net::SendAll(socket->get(), Greeting(address_.token, remote.token), deadline);
    if (!greeted.ok()) return greeted;
    // The answer shows that the other side is the peer, and has taken this connection.
    const std::string expected = Greeting(remote.token, address_.token);
    std::string answer;
    while (answer.size() < expected.size()) {
      absl::Status ready = net::WaitReadable(socket->get(), deadline);
      absl::StatusOr<bool> open = false;
      if (ready.ok()) {
        open = net::ReceiveSome(socket->get(), expected.size() - answer.size(), &answer);
        ready = open.status();
      }
      if (!ready.ok() || (!*open && answer.size() < expected.size())) {
        return absl::Status(
            ready.ok() ? absl::StatusCode::kUnavailable : ready.code(),
            absl::StrCat(
                net::HostPort(remote.ip, remote.port), " took the connection of ", peer_,
                "'s rail but did not greet: ", ready.ok() ? "it closed it" : ready.message()));
      }
    }
    if (answer != expected) {
      return absl::UnavailableError(absl::StrCat(
          "whoever listens at ", net::HostPort(remote.ip, remote.port), " is not ", peer_));
    }
    return socket;
  }

  absl::StatusOr<net::Fd> AwaitPeer(const TcpAddress& remote, absl::Time deadline) {
    struct Visitor {
      net::Fd fd;
      std::string greeting;
      absl::Time patience;
    };
    const std::string expected = Greeting(remote.token, address_.token);
    std::list<Visitor> visitors;
    while (absl::Now() < deadline) {
      std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
      absl::Time wake = deadline;
      for (const Visitor& visitor : visitors) {
        entries.push_back({visitor.fd.get(), POLLIN, 0});
        wake = std::min(wake, visitor.patience);
      }
      ::poll(entries.data(), entries.size(), net::PollTimeout(wake));
      size_t index = 1;
      for (auto visitor = visitors.begin(); visitor != visitors.end(); ++index) {
        bool open = absl::Now() < visitor->patience;
        if (entries[index].revents != 0) {
          const absl::StatusOr<bool> received = net::ReceiveSome(
              visitor->fd.get(), kGreetingSize - visitor->greeting.size(), &visitor->greeting);
          if (visitor->greeting == expected) {
            absl::Status answered =
                net::SendAll(visitor->fd.get(), Greeting(address_.token, remote.token), deadline);
            if (!answered.ok()) return answered;
            return std::move(visitor->fd);
          }
          open = open && received.ok() && *received && visitor->greeting.size() < kGreetingSize;
        }
        visitor = open ? std::next(visitor) : visitors.erase(visitor);
      }
      if (entries[0].revents == 0) continue;
      absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
      if (!fd.ok()) return fd.status();
      if (!fd->valid()) continue;
      if (visitors.size() == kMostVisitors) visitors.pop_front();
      visitors.push_back({*std::move(fd), "", absl::Now() + kPatience});
    }
    return absl::DeadlineExceededError(absl::StrCat(
        peer_, " did not connect to ", net::HostPort(address_.ip, address_.port), " in time"));
  }

  net::Fd listener_;
  TcpAddress address_;
  std::string peer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> OpenTcpEndpoint(const net::IpAddress& local,
                                                          absl::string_view peer) {
  absl::StatusOr<net::Fd> listener = net::Listen(local, 0);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok()) return bound.status();
  std::array<char, kTokenSize> token;
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return net::ErrnoError("getrandom", errno);
  }
  return std::make_unique<TcpEndpoint>(
      *std::move(listener), TcpAddress{local, bound->port, std::string(token.data(), token.size())},
      std::string(peer));
}

}  // namespace railhead::transport
