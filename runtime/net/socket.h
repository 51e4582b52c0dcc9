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
// IPv4. Port 0: chosen by the kernel.
absl::StatusOr<Fd> Listen(const std::optional<IpAddress>& local, uint16_t port);

// Does the same on an address that this machine may not have now: the socket accepts connections
// while it has the address.
absl::StatusOr<Fd> ListenOnAbsent(const IpAddress& local, uint16_t port);

// Accepts one connection, non-blocking and tuned; an invalid Fd if none waits.
absl::StatusOr<Fd> Accept(int listener);

// Connects to `remote`, from `local` if given and of the same family.
absl::StatusOr<Fd> Dial(const IpAddress& remote, uint16_t port,
                        const std::optional<IpAddress>& local, absl::Time deadline,
                        const Halt& halt = nullptr);

// Starts to connect without waiting. The socket becomes writable at the end; FinishDial returns the
// result.
absl::StatusOr<Fd> StartDial(const IpAddress& remote, uint16_t port,
                             const std::optional<IpAddress>& local);
absl::Status FinishDial(int fd, const IpAddress& remote, uint16_t port);

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
absl::StatusOr<SocketAddress> LocalAddress(int fd);
// Returns the peer's address for messages; "unknown" if the connection is gone.
std::string RemoteText(int fd);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_SOCKET_H_
