// SPDX-License-Identifier: Apache-2.0
//
// Non-blocking TCP sockets whose every wait has a deadline.
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

// "<what>: <the text of errno>" under the code that fits (Unavailable for network troubles).
absl::Status ErrnoError(absl::string_view what, int error_number);

// Whether the error of a socket came from the network or the peer, so that another connection may
// do better; others are this process's own.
bool IsNetworkError(int error_number);

// Milliseconds to give to poll() or epoll_wait() so that they end at the deadline: at least 0, and
// rounded up, so that a caller who loops does not spin through the last millisecond.
int PollTimeout(absl::Time deadline);

// A listening, non-blocking socket. Without `local` it listens on every address of the machine,
// IPv6 and IPv4 alike. Port 0 lets the kernel choose.
absl::StatusOr<Fd> Listen(const std::optional<IpAddress>& local, uint16_t port);

// Takes one waiting connection, non-blocking and tuned; an invalid Fd when none waits.
absl::StatusOr<Fd> Accept(int listener);

// Connects to `remote`, from `local` where that is given and of the same family.
absl::StatusOr<Fd> Dial(const IpAddress& remote, uint16_t port,
                        const std::optional<IpAddress>& local, absl::Time deadline,
                        const Halt& halt = nullptr);

// The same without waiting: starts to connect. The socket becomes writable when that has ended, and
// FinishDial tells how.
absl::StatusOr<Fd> StartDial(const IpAddress& remote, uint16_t port,
                             const std::optional<IpAddress>& local);
absl::Status FinishDial(int fd, const IpAddress& remote, uint16_t port);

// All addresses of a host name or of an address in text. Looks the name up on a helper thread,
// since the resolver knows no deadline.
absl::StatusOr<std::vector<IpAddress>> Resolve(absl::string_view host, absl::Time deadline,
                                               const Halt& halt = nullptr);

// Writes everything, or says why not.
absl::Status SendAll(int fd, absl::string_view bytes, absl::Time deadline);

// Appends what has arrived (at most `limit` bytes) to `into` without waiting. Returns false at the
// end of the stream.
absl::StatusOr<bool> ReceiveSome(int fd, size_t limit, std::string* into);

// Waits until the descriptor is readable. DeadlineExceeded otherwise, or what ended the wait.
absl::Status WaitReadable(int fd, absl::Time deadline, const Halt& halt = nullptr);

struct SocketAddress {
  IpAddress address;
  uint16_t port = 0;
};
absl::StatusOr<SocketAddress> LocalAddress(int fd);
// The other side as text for messages; "unknown" when the connection is already gone.
std::string RemoteText(int fd);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_SOCKET_H_
