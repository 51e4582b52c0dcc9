// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/presence.h"

#include <gtest/gtest.h>

#include "runtime/base/now.h"
#include "runtime/net/address.h"

namespace railhead::nccl {
namespace {

const net::IpAddress kLoopback = *net::IpAddress::Parse("127.0.0.1");

// Listens at a port, until destroyed; the port refuses connections then.
struct Place {
  net::Fd listener = *net::Listen(kLoopback, 0);
  net::SocketAddress at = *net::LocalAddress(listener.get());
};

bool EndsWithin(Presence& presence, absl::Duration duration) {
  const absl::Time deadline = MonotonicNow() + duration;
  while (MonotonicNow() < deadline) {
    if (presence.HasEnded(MonotonicNow())) return true;
  }
  return false;
}

TEST(PresenceTest, HasEndedOnceAllPlacesRefuse) {
  Place a;
  Place b;
  Presence presence;
  presence.Learn({a.at, b.at});
  EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(300)));
  a.listener.Reset();
  EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(300)));
  b.listener.Reset();
  EXPECT_TRUE(EndsWithin(presence, absl::Seconds(20)));
  EXPECT_EQ(presence.Places(),
            net::HostPort(a.at.address, a.at.port) + ", " + net::HostPort(b.at.address, b.at.port));
}

// A firewall may reset connections to all places for a moment.
TEST(PresenceTest, RefusalsOfAMomentAreNoEnd) {
  Place a;
  Place b;
  Presence presence;
  presence.Learn({a.at, b.at});
  for (int i = 0; i < 2; ++i) {
    a.listener.Reset();
    b.listener.Reset();
    EXPECT_FALSE(EndsWithin(presence, absl::Seconds(2)));
    a.listener = *net::Listen(kLoopback, a.at.port);
    b.listener = *net::Listen(kLoopback, b.at.port);
    EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(300)));
  }
}

TEST(PresenceTest, APlaceThatAnswersAgainCountsAnew) {
  Place a;
  Place b;
  Presence presence;
  presence.Learn({a.at, b.at});
  a.listener.Reset();
  EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(300)));
  a.listener = *net::Listen(kLoopback, a.at.port);
  b.listener.Reset();
  EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(300)));
  presence.Forget();
  a.listener.Reset();
  EXPECT_TRUE(EndsWithin(presence, absl::Seconds(20)));
}

TEST(PresenceTest, WithoutAPlaceNothingIsKnown) {
  Presence presence;
  EXPECT_FALSE(EndsWithin(presence, absl::Milliseconds(50)));
}

}  // namespace
}  // namespace railhead::nccl
