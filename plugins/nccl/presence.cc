// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/presence.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/net/address.h"

namespace railhead::nccl {
namespace {

constexpr absl::Duration kBetween = absl::Milliseconds(50);
constexpr absl::Duration kPatience = absl::Seconds(1);
// Each place must refuse this often: a place that refused first may answer by now.
constexpr size_t kRounds = 2;
constexpr absl::Duration kLasting = absl::Seconds(3);

}  // namespace

void Presence::Learn(std::vector<net::SocketAddress> places) {
  places_ = std::move(places);
  refused_ = 0;
  dialed_.Reset();
}

std::string Presence::Places() const {
  return absl::StrJoin(places_, ", ", [](std::string* out, const net::SocketAddress& place) {
    out->append(net::HostPort(place.address, place.port));
  });
}

bool Presence::HasEnded(absl::Time now) {
  if (places_.empty()) return false;
  if (dialed_.valid()) {
    Finish(now);
  } else if (now >= next_) {
    Begin(now);
  }
  return refused_ >= kRounds * places_.size() && now - first_ >= kLasting;
}

void Presence::Begin(absl::Time now) {
  next_ = now + kBetween;
  const net::SocketAddress& place = places_[refused_ % places_.size()];
  int error = 0;
  absl::StatusOr<net::Fd> dialed =
      net::StartDial(place.address, place.port, std::nullopt, /*interface=*/"", &error);
  if (dialed.ok()) {
    dialed_ = *std::move(dialed);
    give_up_ = now + kPatience;
    return;
  }
  Count(error, now);
}

void Presence::Count(int error, absl::Time now) {
  if (refused_ == 0) first_ = now;
  refused_ = error == ECONNREFUSED ? refused_ + 1 : 0;
}

void Presence::Finish(absl::Time now) {
  pollfd entry{dialed_.get(), POLLOUT, 0};
  int error = ETIMEDOUT;
  if (::poll(&entry, 1, 0) > 0) {
    socklen_t size = sizeof(error);
    if (::getsockopt(dialed_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  } else if (now < give_up_) {
    return;
  }
  dialed_.Reset();
  Count(error, now);
}

}  // namespace railhead::nccl
