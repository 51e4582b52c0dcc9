// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/condition.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/net/by_interface.h"

namespace railhead::net {
namespace {

void SetOption(int fd, int level, int option, int value) {
  // Errors are ignored: these options improve a socket, which also works without them.
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// Small messages leave at once, and a peer whose machine vanished is detected within half a minute
// even if no data is sent.
void Tune(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

absl::Status WaitFor(int fd, decltype(pollfd::events) events, absl::Time deadline,
                     const Halt& halt = nullptr) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, PollTimeout(NextCheck(halt, deadline)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoError("poll", errno);
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    if (MonotonicNow() >= deadline) return absl::DeadlineExceededError("the deadline has passed");
  }
}

// Returns the error of a call for which the kernel chooses a port; `none_free` is its errno if
// there is none.
absl::Status PortError(absl::string_view what, int error_number, int none_free) {
  absl::Status error = ErrnoError(what, error_number);
  if (error_number != none_free) return error;
  return absl::Status(error.code(),
                      absl::StrCat(error.message(), " (if all ports are in use, widen ",
                                   "net.ipv4.ip_local_port_range)"));
}

struct ListenOptions {
  bool both_families = false;
  bool shares_port = false;    // with another socket of this user
  bool absent = false;         // this machine may not have the address now
  std::string interface = "";  // "": all
};

absl::StatusOr<Fd> ListenOn(const IpAddress& address, uint16_t port,
                            const ListenOptions& options = {}) {
  sockaddr_storage storage;
  const socklen_t length = address.ToSockaddr(port, &storage);
  Fd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError("socket", errno);
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (options.both_families) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (options.shares_port) SetOption(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  // Sockets of IPv6 have it, too.
  if (options.absent) SetOption(fd.get(), IPPROTO_IP, IP_FREEBIND, 1);
  if (!options.interface.empty()) {
    if (absl::Status bound = BindToInterface(fd.get(), options.interface); !bound.ok()) {
      return bound;
    }
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0 ||
      ::listen(fd.get(), 1024) != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("listen on ", HostPort(address, port));
    absl::Status failed = port == 0 ? PortError(what, error, EADDRINUSE) : ErrnoError(what, error);
    return error == EADDRINUSE ? absl::AlreadyExistsError(failed.message()) : failed;
  }
  return fd;
}

absl::StatusOr<SocketAddress> AddressBy(decltype(::getsockname)* get, const char* what, int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (get(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return ErrnoError(what, errno);
  absl::StatusOr<IpAddress> address =
      IpAddress::FromSockaddr(reinterpret_cast<const sockaddr*>(&storage));
  if (!address.ok()) return address.status();
  // Both families keep the port at the same place.
  return SocketAddress{*address, ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port)};
}

// Result of Resolve's helper thread; outlives a caller that has stopped waiting.
struct Lookup {
  std::mutex mutex;
  Condition done_signal;
  bool done = false;
  int error = 0;
  std::vector<IpAddress> addresses;
};

void RunLookup(const std::string& host, const std::shared_ptr<Lookup>& lookup) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  std::vector<IpAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const absl::StatusOr<IpAddress> address = IpAddress::FromSockaddr(entry->ai_addr);
    if (address.ok()) addresses.push_back(*address);
  }
  if (list != nullptr) ::freeaddrinfo(list);
  const std::lock_guard<std::mutex> lock(lookup->mutex);
  lookup->error = error;
  lookup->addresses = std::move(addresses);
  lookup->done = true;
  lookup->done_signal.NotifyAll();
}

}  // namespace

absl::Status ErrnoError(absl::string_view what, int error_number) {
  std::string text =
      absl::StrCat(what, ": ", std::error_code(error_number, std::generic_category()).message());
  if (error_number == EMFILE) {
    absl::StrAppend(&text, " (EMFILE: this process may have ", DescriptorLimit(),
                    " open; raise its RLIMIT_NOFILE)");
  } else if (error_number == ENFILE) {
    text += " (ENFILE: all of this machine are in use; raise fs.file-max)";
  }
  switch (error_number) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case ETIMEDOUT:
      return absl::UnavailableError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnknownError(text);
  }
}

bool IsNetworkError(int error_number) {
  switch (error_number) {
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOBUFS:
    case ENONET:
    case ENOTCONN:
    case EPERM:  // a firewall of this machine
    case EPIPE:
    case EPROTO:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

int PollTimeout(absl::Time deadline) {
  const absl::Duration left = deadline - MonotonicNow();
  if (left <= absl::ZeroDuration()) return 0;
  constexpr int64_t kLongest = 3'600'000;
  return static_cast<int>(std::min(kLongest, absl::ToInt64Milliseconds(left)) + 1);
}

absl::StatusOr<Fd> Listen(const std::optional<IpAddress>& local, uint16_t port) {
  if (local.has_value()) return ListenOn(*local, port);
  absl::StatusOr<Fd> both = ListenOn(*IpAddress::Parse("::"), port, {.both_families = true});
  if (both.ok()) return both;
  // Kernels without IPv6 cannot open such a socket at all.
  absl::StatusOr<Fd> v4 = ListenOn(IpAddress(), port);
  return v4.ok() ? std::move(v4) : std::move(both);
}

absl::StatusOr<Fd> ListenOnAbsent(const IpAddress& local, uint16_t port) {
  return ListenOn(local, port, {.absent = true});
}

absl::StatusOr<ListenerPair> ListenByInterface(const IpAddress& local,
                                               absl::string_view interface) {
  // The kernel never chooses a port that is in use, so no other process shares this one.
  ListenOptions options = {.shares_port = true, .absent = true};
  absl::StatusOr<Fd> other = ListenOn(local, 0, options);
  if (!other.ok()) return other.status();
  const absl::StatusOr<SocketAddress> address = LocalAddress(other->get());
  if (!address.ok()) return address.status();
  options.interface = std::string(interface);
  absl::StatusOr<Fd> bound = ListenOn(local, address->port, options);
  if (!bound.ok()) return bound.status();
  // If two sockets match a connection, the kernel prefers a bound one; but with this option it
  // takes the one that it finds first.
  for (const Fd* fd : {&*bound, &*other}) SetOption(fd->get(), SOL_SOCKET, SO_REUSEPORT, 0);
  return ListenerPair{*std::move(bound), *std::move(other)};
}

absl::StatusOr<Fd> Accept(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) {
    fd.KeepFromChildren();
    Tune(fd.get());
    return fd;
  }
  // accept() passes on what has become of a connection that waited; the next one may be well.
  if (errno == EAGAIN || errno == EINTR || errno == ENOPROTOOPT || errno == EOPNOTSUPP ||
      (IsNetworkError(errno) && errno != ENOBUFS)) {
    return Fd();
  }
  return ErrnoError("accept", errno);
}

absl::StatusOr<Fd> StartDial(const IpAddress& remote, uint16_t port,
                             const std::optional<IpAddress>& local, absl::string_view interface,
                             int* error_number) {
  sockaddr_storage storage;
  const socklen_t length = remote.ToSockaddr(port, &storage);
  Fd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError("socket", errno);
  fd.KeepFromChildren();
  Tune(fd.get());
  if (!interface.empty()) {
    if (absl::Status bound = BindToInterface(fd.get(), interface); !bound.ok()) return bound;
  }
  if (local.has_value() && local->is_v4() == remote.is_v4()) {
    // The port is chosen when the peer is known, so connections to different peers may share one:
    // else a machine has some 28,000 ports for all ranks on it.
    SetOption(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    sockaddr_storage from;
    const socklen_t from_length = local->ToSockaddr(0, &from);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), from_length) != 0) {
      return ErrnoError(absl::StrCat("bind to ", local->ToString()), errno);
    }
  }
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0) return fd;
  if (errno == EINPROGRESS) return fd;
  const int error = errno;
  if (error_number != nullptr) *error_number = error;
  return PortError(absl::StrCat("connect to ", HostPort(remote, port)), error, EADDRNOTAVAIL);
}

int TakeError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void TestWhenIdle(int fd, absl::Duration idle, absl::Duration interval) {
  // As many as Linux allows: its own timeout would end the connection.
  constexpr int kMostTests = 127;
  const auto seconds = [](absl::Duration duration) {
    return static_cast<int>(std::max<int64_t>(1, absl::ToInt64Seconds(duration)));
  };
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds(idle));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds(interval));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kMostTests);
}

absl::Duration SilenceOf(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return absl::ZeroDuration();
  return absl::Milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
}

void CloseByReset(Fd fd) {
  const linger at_once = {1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

absl::Status FinishDial(int fd, const IpAddress& remote, uint16_t port) {
  const int error = TakeError(fd);
  // Reset since, or closed: whether that is seen here or in the first transfer is chance.
  const bool connected = error == 0 || error == ECONNRESET || error == EPIPE;
  if (connected) return absl::OkStatus();
  return ErrnoError(absl::StrCat("connect to ", HostPort(remote, port)), error);
}

absl::StatusOr<Fd> Dial(const IpAddress& remote, uint16_t port,
                        const std::optional<IpAddress>& local, absl::Time deadline,
                        const Halt& halt) {
  absl::StatusOr<Fd> fd = StartDial(remote, port, local);
  if (!fd.ok()) return fd;
  if (absl::Status ready = WaitFor(fd->get(), POLLOUT, deadline, halt); !ready.ok()) {
    return absl::Status(ready.code(),
                        absl::StrCat("connect to ", HostPort(remote, port), ": ", ready.message()));
  }
  if (absl::Status connected = FinishDial(fd->get(), remote, port); !connected.ok()) {
    return connected;
  }
  return fd;
}

absl::StatusOr<std::vector<IpAddress>> Resolve(absl::string_view host, absl::Time deadline,
                                               const Halt& halt) {
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(host); literal.ok()) {
    return std::vector<IpAddress>{*literal};
  }
  const auto lookup = std::make_shared<Lookup>();
  absl::StatusOr<std::thread> helper =
      TryStartThread([name = std::string(host), lookup] { RunLookup(name, lookup); });
  if (!helper.ok()) {
    return absl::Status(helper.status().code(),
                        absl::StrCat("cannot resolve '", host, "': ", helper.status().message()));
  }
  helper->detach();
  std::unique_lock<std::mutex> lock(lookup->mutex);
  while (!lookup->done_signal.WaitUntil(lock, NextCheck(halt, deadline),
                                        [&lookup] { return lookup->done; })) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    if (MonotonicNow() < deadline) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("the name '", host, "' was not resolved in time"));
  }
  if (lookup->error != 0 || lookup->addresses.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot resolve '", host,
        "': ", lookup->error != 0 ? ::gai_strerror(lookup->error) : "it has no IP address"));
  }
  return lookup->addresses;
}

absl::Status SendAll(int fd, absl::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (absl::Status ready = WaitFor(fd, POLLOUT, deadline); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return ErrnoError("send", errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReceiveSome(int fd, size_t limit, std::string* into) {
  std::array<char, 16384> buffer;
  size_t taken = 0;
  while (taken < limit) {
    const ssize_t got = ::recv(fd, buffer.data(), std::min(buffer.size(), limit - taken), 0);
    if (got > 0) {
      into->append(buffer.data(), static_cast<size_t>(got));
      taken += static_cast<size_t>(got);
    } else if (got == 0) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      return ErrnoError("receive", errno);
    }
  }
  return true;
}

absl::Status WaitReadable(int fd, absl::Time deadline, const Halt& halt) {
  return WaitFor(fd, POLLIN, deadline, halt);
}

absl::StatusOr<SocketAddress> LocalAddress(int fd) {
  return AddressBy(::getsockname, "getsockname", fd);
}

absl::StatusOr<SocketAddress> RemoteAddress(int fd) {
  return AddressBy(::getpeername, "getpeername", fd);
}

std::string RemoteText(int fd) {
  const absl::StatusOr<SocketAddress> remote = RemoteAddress(fd);
  return remote.ok() ? HostPort(remote->address, remote->port) : "unknown";
}

}  // namespace railhead::net
