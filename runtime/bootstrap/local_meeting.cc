// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local_meeting.h"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/mac.h"
#include "runtime/base/now.h"
#include "runtime/base/thread.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/call.h"
#include "runtime/net/local_socket.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

constexpr size_t kPortSize = 2;
// Pause after the system could not accept a connection.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

net::IpAddress Loopback() { return *net::IpAddress::Parse("127.0.0.1"); }

// A local name that reveals nothing of the launch.
std::string NameOfLaunch(absl::string_view launch) {
  return absl::StrCat("railhead-meeting-",
                      absl::BytesToHexString(Mac("", "railhead local meeting", {launch})));
}

}  // namespace

LocalMeeting::LocalMeeting(absl::string_view launch, std::string described)
    : name_(NameOfLaunch(launch)), described_(std::move(described)) {}

LocalMeeting::~LocalMeeting() {
  if (!server_.joinable()) return;
  end_.Signal();
  server_.join();
}

std::string LocalMeeting::Where() const { return absl::StrCat("the local socket of ", described_); }

std::string LocalMeeting::SameOnAllRanks() const {
  return "the same launcher started them on this host, in one network namespace";
}

absl::StatusOr<net::Fd> LocalMeeting::Open(absl::Time /*deadline*/, const Halt& /*halt*/) {
  absl::StatusOr<net::Fd> listener = net::Listen(Loopback(), 0);
  const absl::StatusOr<net::SocketAddress> bound =
      listener.ok() ? net::LocalAddress(listener->get()) : listener.status();
  if (!bound.ok()) {
    return absl::Status(
        bound.status().code(),
        absl::StrCat("cannot listen for the other ranks of this host: ", bound.status().message()));
  }
  absl::StatusOr<net::Fd> socket = net::BindLocal(name_);
  if (absl::IsAlreadyExists(socket.status())) {
    return absl::AlreadyExistsError(
        absl::StrCat("another process is rank 0 of ", described_,
                     ": let one process of this launch call MPI_Init or rhCommInitFromEnv at a "
                     "time as rank 0, or set MASTER_ADDR and MASTER_PORT"));
  }
  absl::Status listens = socket.ok() ? net::ListenLocal(*socket) : socket.status();
  if (!listens.ok()) return listens;
  absl::StatusOr<net::Event> end = net::Event::Open();
  if (!end.ok()) return end.status();
  socket_ = *std::move(socket);
  // A child would keep the name.
  socket_.KeepFromChildren();
  end_ = *std::move(end);
  absl::StatusOr<std::thread> server = TryStartThread([this, port = bound->port] { Serve(port); });
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return listener;
}

void LocalMeeting::Serve(uint16_t port) const {
  WireWriter answer;
  answer.U16(port);
  const std::string bytes = answer.Take();
  while (true) {
    pollfd entries[] = {{end_.fd(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[0].revents != 0) return;
    if (entries[1].revents == 0) continue;
    const absl::StatusOr<net::Fd> guest = net::Accept(socket_.get());
    if (!guest.ok()) {
      // Out of descriptors: the connection stays readable.
      ::poll(entries, 1, net::PollTimeout(MonotonicNow() + kAcceptPause));
      continue;
    }
    if (!guest->valid() || !net::IsOurUser(guest->get())) continue;
    // Fits into the empty buffer of a connection.
    net::SendAll(guest->get(), bytes, MonotonicNow()).IgnoreError();
  }
}

absl::StatusOr<net::Fd> LocalMeeting::Dial(absl::Time deadline, const Halt& halt) {
  const absl::Time patience = std::min(deadline, MonotonicNow() + kOneDial);
  absl::StatusOr<net::Fd> guide = net::DialLocal(name_, patience, halt);
  if (absl::IsNotFound(guide.status())) {
    return absl::UnavailableError(
        "rank 0 is not there yet; if the ranks have network namespaces of their own, set "
        "MASTER_ADDR "
        "and MASTER_PORT on all of them");
  }
  if (!guide.ok()) return guide;
  if (!net::IsOurUser(guide->get())) {
    return absl::PermissionDeniedError("a process of another user has taken the place of rank 0");
  }
  std::string bytes;
  while (bytes.size() < kPortSize) {
    absl::Status ready = net::WaitReadable(guide->get(), patience, halt);
    if (!ready.ok()) return ready;
    const absl::StatusOr<bool> open = net::ReceiveSome(guide->get(), kPortSize, &bytes);
    if (!open.ok()) return open.status();
    if (!*open && bytes.size() < kPortSize) {
      return absl::UnavailableError("rank 0 closed its local socket");
    }
  }
  WireReader reader(bytes);
  return net::Dial(Loopback(), reader.U16(), std::nullopt, patience, halt);
}

}  // namespace railhead::bootstrap
