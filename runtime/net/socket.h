// SPDX-License-Identifier: Apache-2.0
//
// Non-blocking TCP sockets; every wait has a deadline.
#ifndef RAILHEAD_RUNTIME_NET_SOCKET_H_
#define RAILHEAD_RUNTIME_NET_SOCKET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::net {

// Returns "<what>: <text of errno>" with a fitting code (Unavailable for network errors).
absl::Status ErrnoError(absl::string_view what, int error_number);

// Returns true if a socket's error came from the network or the peer, so that a new connection may
// help.
bool IsNetworkError(int error_number);

// Returns milliseconds for poll() or epoll_wait() until the deadline: at least 0, and rounded up,
// so that loops do not spin in the last millisecond.
int PollTimeout(absl::Time deadline);

// Returns a listening, non-blocking socket. Without `local` it listens on every address, IPv6 and
// IPv4. Port 0: chosen by the kernel. AlreadyExists if another socket has the port.
absl::StatusOr<Fd> Listen(const std::optional<IpAddress>& local, uint16_t port);

// Does the same on an address that this machine may not have now: the socket accepts connections
// while it has the address.
absl::StatusOr<Fd> ListenOnAbsent(const IpAddress& local, uint16_t port);

// Listens at `local`, which may also be absent now, and at a port that the kernel chooses, with two
// sockets: one for the connections that come in by `interface`, which are bound to it, and one for
// all others.
struct ListenerPair {
  Fd bound;
  Fd other;
};
absl::StatusOr<ListenerPair> ListenByInterface(const IpAddress& local, absl::string_view interface);

// Accepts one connection, non-blocking and tuned; an invalid Fd if none waits.
absl::StatusOr<Fd> Accept(int listener);

// Connects to `remote`, from `local` if given and of the same family.
absl::StatusOr<Fd> Dial(const IpAddress& remote, uint16_t port,
                        const std::optional<IpAddress>& local, absl::Time deadline,
                        const Halt& halt = nullptr);

// Starts to connect without waiting. The socket becomes writable at the end; FinishDial returns the
// result: OK also if the peer has ended the connection since, which the first transfer shows.
// `interface`: see BindToInterface (by_interface.h); "": the kernel chooses by the destination.
// `error_number`: set if connect() fails at once.
absl::StatusOr<Fd> StartDial(const IpAddress& remote, uint16_t port,
                             const std::optional<IpAddress>& local,
                             absl::string_view interface = "", int* error_number = nullptr);
absl::Status FinishDial(int fd, const IpAddress& remote, uint16_t port);
// Returns the socket's pending error, and clears it.
int TakeError(int fd);

// Makes the kernel test an idle connection after `idle`, and then at this interval, without ending
// it: SilenceOf shows the result. In whole seconds.
void TestWhenIdle(int fd, absl::Duration idle, absl::Duration interval);
// Returns how long the peer's kernel has sent nothing, not even an acknowledgement.
absl::Duration SilenceOf(int fd);
// Closes a connection that has failed, by a reset: the peer must not take it for the regular end
// that a process's exit also causes.
void CloseByReset(Fd fd);

// Returns all addresses of a host name or textual address. Resolves on a helper thread, since the
// resolver has no deadline.
absl::StatusOr<std::vector<IpAddress>> Resolve(absl::string_view host, absl::Time deadline,
                                               const Halt& halt = nullptr);

// Writes everything, or returns an error.
absl::Status SendAll(int fd, absl::string_view bytes, absl::Time deadline);

// Appends available bytes (at most `limit`) to `into` without waiting. Returns false at the end of
// the stream.
absl::StatusOr<bool> ReceiveSome(int fd, size_t limit, std::string* into);

// Waits until the descriptor is readable. Else DeadlineExceeded, or the error of `halt`.
absl::Status WaitReadable(int fd, absl::Time deadline, const Halt& halt = nullptr);

struct SocketAddress {
  IpAddress address;
  uint16_t port = 0;
};
// Returns the address of this end of a connection, and of the other one.
absl::StatusOr<SocketAddress> LocalAddress(int fd);
absl::StatusOr<SocketAddress> RemoteAddress(int fd);
// Returns the peer's address for messages; "unknown" if the connection is gone.
std::string RemoteText(int fd);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_SOCKET_H_
