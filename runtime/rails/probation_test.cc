// SPDX-License-Identifier: Apache-2.0
//
// Rails that come back and do not work: half-broken ones must not be used, and those that are lost
// soon after each return must not be tried again and again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/peers_for_test.h"
#include "runtime/testing/fake_link.h"

namespace railhead::rails {
namespace {

using railhead::testing::FakeCable;
using railhead::testing::FakeLink;

constexpr absl::Duration kLook = absl::Milliseconds(10);
// After so long without acknowledgement, a link gives up its connection (tcp/ack_timeout.h).
constexpr absl::Duration kSilence = absl::Milliseconds(300);

// Two ranks that exchange messages without a pause, over two rails, and their time.
class ProbationTest : public ::testing::Test {
 protected:
  // Runs for so long. Rail 0's connection ends kSilence after something has vanished on it; the
  // next one may be made at once.
  void Run(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += kLook) {
      FakeCable& cable = pair_.links_a[0]->cable();
      const bool stuck = cable.ways[0].stuck || cable.ways[1].stuck;
      if (!stuck) stuck_since_ = absl::InfiniteFuture();
      if (stuck) stuck_since_ = std::min(stuck_since_, now_);
      if (now_ - stuck_since_ >= kSilence) {
        cable.Cut();
        cable.plugged = true;
      }
      Exchange();
      ASSERT_TRUE(pair_.a->Poll(now_).ok());
      ASSERT_TRUE(pair_.b->Poll(now_).ok());
    }
  }
  // Starts the next message each way when the last one has arrived.
  void Exchange() {
    if (!pair_.a->Idle() || !pair_.b->Idle()) return;
    for (std::string& into : into_) {
      ASSERT_TRUE(into.empty() || into == data_);
      into.assign(data_.size(), '\0');
    }
    ++messages_;
    pair_.a->PostReceive(Into(into_[0]));
    pair_.b->PostReceive(Into(into_[1]));
    pair_.a->PostSend(Bytes(data_));
    pair_.b->PostSend(Bytes(data_));
  }
  const RailHealth& health() const { return pair_.a->rail_health(0); }

  const std::string data_ = std::string(200000, 'd');
  std::array<std::string, 2> into_;
  PeerPair pair_ = MakeRecoveringPeers(2);
  absl::Time now_ = absl::UnixEpoch();
  absl::Time stuck_since_ = absl::InfiniteFuture();
  uint64_t messages_ = 0;
};

// Which direction drops what is larger than a small packet.
class HalfBrokenTest : public ProbationTest,
                       public ::testing::WithParamInterface<std::array<bool, 2>> {
 protected:
  void SetBroken(bool broken) {
    const size_t carries = broken ? 1400 : SIZE_MAX;
    if (GetParam()[0]) pair_.links_a[0]->carries = carries;
    if (GetParam()[1]) pair_.links_b[0]->carries = carries;
  }
};

TEST_P(HalfBrokenTest, ARailThatDropsLargePacketsIsLostOnceAndNotUsedUntilItCarriesThem) {
  Run(absl::Seconds(2));
  EXPECT_EQ(health().failovers, 0U);
  SetBroken(true);
  Run(absl::Seconds(3));
  const uint64_t before = messages_;
  Run(absl::Minutes(5));
  // Both a message and its acknowledgement take a look.
  EXPECT_GT(messages_ - before, absl::Minutes(5) / kLook / 4);
  EXPECT_EQ(health().failovers, 1U);
  EXPECT_EQ(health().returns, 0U);
  EXPECT_FALSE(health().up);

  SetBroken(false);
  Run(absl::Minutes(2));
  EXPECT_TRUE(health().up);
  EXPECT_EQ(health().returns, 1U);
  EXPECT_EQ(pair_.b->rail_health(0).returns, 1U);
  EXPECT_EQ(health().failovers, 1U);
}

INSTANTIATE_TEST_SUITE_P(Directions, HalfBrokenTest,
                         ::testing::Values(std::array{true, false}, std::array{false, true},
                                           std::array{true, true}));

TEST_F(ProbationTest, ARailThatIsLostSoonAfterEachReturnIsTriedLessAndLess) {
  Run(absl::Minutes(2));
  std::vector<absl::Duration> pauses;  // from loss to return
  for (int i = 0; i < 13; ++i) {
    FakeCable& cable = pair_.links_a[0]->cable();
    cable.Cut();
    cable.plugged = true;
    const absl::Time lost = now_;
    Run(2 * kLook);
    while (!health().up) ASSERT_NO_FATAL_FAILURE(Run(kLook));
    pauses.push_back(now_ - lost);
    Run(absl::Seconds(1));
  }
  EXPECT_LT(pauses[0], absl::Milliseconds(100)) << "the first loss costs no pause";
  for (size_t i = 2; i < pauses.size(); ++i) {
    EXPECT_GT(pauses[i], std::min(1.5 * pauses[i - 1], absl::Minutes(1))) << i;
  }
  EXPECT_LT(pauses.back(), absl::Seconds(61));
  // After a minute in service it is like any other.
  Run(absl::Seconds(61));
  FakeCable& cable = pair_.links_a[0]->cable();
  cable.Cut();
  cable.plugged = true;
  Run(absl::Milliseconds(90));
  EXPECT_TRUE(health().up);
}

// A rank that has never had the connection has nothing to prove, but its peer may.
TEST(OneSidedTest, ARankProvesARailThatOnlyItsPeerHasLost) {
  PeerPair pair = MakeRecoveringPeers(2);
  FakeLink& link = *pair.links_a[0];
  absl::Time now = absl::UnixEpoch();
  link.Drop("only this side");
  for (int i = 0; i < 20; ++i, now += kLook) {
    ASSERT_TRUE(pair.a->Poll(now).ok());
    // The other rank sees a new connection in place of the old one.
    ASSERT_TRUE(pair.b->Poll(now).ok());
  }
  EXPECT_TRUE(pair.a->rail_health(0).up);
  EXPECT_TRUE(pair.b->rail_health(0).up);
}

}  // namespace
}  // namespace railhead::rails
