// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/net/socket.h"
#include "runtime/transport/door/door.h"
#include "runtime/transport/tcp/tcp_link.h"

namespace railhead::transport {
namespace {

// Attempts end and begin with time; so often somebody looks.
constexpr absl::Duration kLook = absl::Milliseconds(20);

class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(std::unique_ptr<Door> door, std::string peer)
      : door_(std::move(door)), peer_(std::move(peer)), address_(door_->Address()) {}

  std::string Address() const override { return address_; }

  absl::StatusOr<std::unique_ptr<Link>> Connect(absl::string_view peer_address,
                                                absl::Time deadline) override {
    if (absl::Status set = door_->SetPeer(peer_address); !set.ok()) return set;
    while (true) {
      const absl::Time now = absl::Now();
      absl::StatusOr<net::Fd> socket = door_->Advance(now);
      if (socket.ok() && socket->valid()) {
        const std::string name = door_->Name();
        return TcpLink::Create(*std::move(socket), name, std::move(door_));
      }
      // What has not answered may still do so; who refuses will not think better of it.
      if (!socket.ok() && !absl::IsDeadlineExceeded(socket.status())) return socket.status();
      if (now >= deadline) break;
      net::WaitReadable(door_->event_fd(), std::min(deadline, now + kLook)).IgnoreError();
    }
    return absl::DeadlineExceededError(
        absl::StrCat(peer_, door_->dials() ? " did not answer" : " did not connect", " in time (",
                     door_->Name(), ")"));
  }

 private:
  std::unique_ptr<Door> door_;
  std::string peer_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> OpenTcpEndpoint(std::shared_ptr<Hall> hall,
                                                          absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<Door>> door = Door::Open(std::move(hall), peer);
  if (!door.ok()) return door.status();
  return std::make_unique<TcpEndpoint>(*std::move(door), std::string(peer));
}

absl::StatusOr<std::unique_ptr<Link>> OpenTcpLink(std::shared_ptr<Hall> hall,
                                                  absl::string_view peer_address,
                                                  absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<Door>> door = Door::Open(std::move(hall), peer);
  if (!door.ok()) return door.status();
  if (absl::Status set = (*door)->SetPeer(peer_address); !set.ok()) return set;
  const std::string name = (*door)->Name();
  return TcpLink::Create(net::Fd(), name, *std::move(door));
}

}  // namespace railhead::transport
