// SPDX-License-Identifier: Apache-2.0
//
// Rails to a peer that the job begins to use before all of them are connected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/fake_link.h"

namespace railhead::rails {
namespace {

using ::railhead::testing::FakeCable;
using ::railhead::testing::FakeLink;

class LateRailTest : public ::testing::Test {
 protected:
  // Links that are not connected yet, of which the plugged ones connect when they try.
  explicit LateRailTest(size_t rails = 2) {
    std::vector<Rail> to_peer;
    std::vector<Rail> from_peer;
    for (size_t i = 0; i < rails; ++i) {
      const auto cable = std::make_shared<FakeCable>();
      const RailName name{static_cast<int>(i), "eth", 0, "tcp"};
      to_peer.push_back({name, std::make_unique<FakeLink>(cable, 0)});
      from_peer.push_back({name, std::make_unique<FakeLink>(cable, 1)});
      cable->Cut();
      cable->unplugged = absl::DeadlineExceededError("it accepted the connection");
      cables_.push_back(cable);
    }
    const Logger log(LogLevel::kError, "");
    peer_ = std::make_unique<Peer>("rank 1", std::move(to_peer), log);
    other_ = std::make_unique<Peer>("rank 0", std::move(from_peer), log);
  }
  void PollFor(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Milliseconds(100)) {
      ASSERT_TRUE(peer_->Poll(now_).ok());
      ASSERT_TRUE(other_->Poll(now_).ok());
    }
  }
  bool Lost(size_t rail) const { return peer_->rail_health(rail).lost; }

  std::vector<std::shared_ptr<FakeCable>> cables_;
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Peer> other_;  // the other side of the rails
  absl::Time now_ = MonotonicNow();
};

// It may not have called yet.
TEST_F(LateRailTest, APeerThatIsNotThereHasLostNoRail) {
  PollFor(absl::Minutes(2));
  EXPECT_FALSE(Lost(0) || Lost(1));
  EXPECT_FALSE(peer_->Quiet());
}

// The peer is alive although nothing was exchanged yet: the watch over silent ranks relies on it.
TEST_F(LateRailTest, AConnectionIsASignOfThePeer) {
  PollFor(absl::Seconds(5));
  EXPECT_EQ(peer_->last_sign(), absl::InfinitePast());
  cables_[1]->plugged = true;
  const absl::Time before = now_;
  PollFor(absl::Seconds(2));
  EXPECT_GE(peer_->last_sign(), before);
  EXPECT_GE(other_->last_sign(), before);
}

// Or metrics and logs would say that all is well, for as long as the job runs.
TEST_F(LateRailTest, ARailThatDoesNotConnectWhileAnotherDoesIsLost) {
  PollFor(absl::Minutes(1));
  cables_[0]->plugged = true;
  PollFor(absl::Seconds(5));
  EXPECT_FALSE(Lost(0) || Lost(1));
  PollFor(absl::Seconds(10));
  EXPECT_FALSE(Lost(0));
  EXPECT_TRUE(Lost(1));
  EXPECT_EQ(peer_->rail_health(1).failovers, 1U);
  EXPECT_TRUE(peer_->Quiet());
  EXPECT_THAT(peer_->DescribeProgress(), ::testing::HasSubstr("is lost"));

  cables_[1]->plugged = true;
  PollFor(absl::Seconds(1));
  EXPECT_FALSE(Lost(1));
  EXPECT_TRUE(peer_->rail_health(1).up);
  EXPECT_EQ(peer_->rail_health(1).returns, 1U);
}

// As rails that are cut, or without descriptors: what waits for them must not do so in silence.
TEST_F(LateRailTest, RailsWhoseConnectionFailsAreLostAlthoughNoOtherIsUp) {
  PollFor(absl::Minutes(1));
  for (const auto& cable : cables_) cable->unplugged = absl::UnavailableError("no route to host");
  PollFor(absl::Seconds(9));
  EXPECT_FALSE(Lost(0) || Lost(1));
  EXPECT_THAT(peer_->DescribeProgress(),
              ::testing::HasSubstr("and is not connected: no route to host"));
  PollFor(absl::Seconds(2));
  EXPECT_TRUE(Lost(0) && Lost(1));
  EXPECT_EQ(peer_->rail_health(0).failovers, 1U);
  cables_[0]->unplugged = absl::UnavailableError("too many open files");
  PollFor(absl::Seconds(1));
  EXPECT_THAT(peer_->DescribeProgress(),
              ::testing::HasSubstr("and is lost (not connected: too many open files)"));
  EXPECT_FALSE(peer_->AllUp());

  for (const auto& cable : cables_) cable->plugged = true;
  PollFor(absl::Seconds(1));
  EXPECT_FALSE(Lost(0) || Lost(1));
  EXPECT_EQ(peer_->rail_health(0).returns, 1U);
}

// The peer comes in time: it accepts the connection, at first without an answer.
TEST_F(LateRailTest, APeerThatComesWithinTheTimeHasLostNoRail) {
  for (int i = 0; i < 10; ++i) {
    for (const auto& cable : cables_) cable->unplugged = absl::UnavailableError("refused");
    PollFor(absl::Seconds(8));
    for (const auto& cable : cables_) cable->unplugged = absl::DeadlineExceededError("accepted");
    PollFor(absl::Seconds(1));
  }
  EXPECT_FALSE(Lost(0) || Lost(1));
}

// Two rails at the start of a communicator, of which only the first is connected on all sides.
class DownAtStartTest : public ::testing::Test {
 protected:
  // `sides`: those on which rail 1 is not connected.
  void Start(const std::vector<int>& sides) {
    for (size_t i = 0; i < 2; ++i) {
      cables_[i] = std::make_shared<FakeCable>();
      for (size_t side = 0; side < 2; ++side) {
        auto link = std::make_unique<FakeLink>(cables_[i], side);
        links_[side][i] = link.get();
        rails_[side].push_back({{static_cast<int>(i), "eth", 0, "tcp"}, std::move(link)});
      }
    }
    cables_[1]->plugged = false;
    for (const int side : sides) links_[static_cast<size_t>(side)][1]->Drop("down");
    for (size_t side = 0; side < 2; ++side) {
      peers_[side] = std::make_unique<Peer>("the other", std::exchange(rails_[side], {}),
                                            Logger(LogLevel::kError, ""));
    }
  }
  void PollFor(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Milliseconds(100)) {
      for (const auto& peer : peers_) ASSERT_TRUE(peer->Poll(now_).ok());
    }
  }

  std::shared_ptr<FakeCable> cables_[2];
  FakeLink* links_[2][2] = {};
  std::vector<Rail> rails_[2];
  std::unique_ptr<Peer> peers_[2];
  absl::Time now_ = MonotonicNow();
};

TEST_F(DownAtStartTest, TheRailIsLostAtOnceAndReturnsWhateverTheOtherSideSaw) {
  for (const std::vector<int>& sides : {std::vector<int>{0, 1}, {0}, {1}}) {
    Start(sides);
    for (const int side : sides) {
      const RailHealth& health = peers_[side]->rail_health(1);
      EXPECT_TRUE(health.lost);
      EXPECT_FALSE(health.up);
      EXPECT_TRUE(peers_[side]->Quiet());
      EXPECT_THAT(peers_[side]->DescribeProgress(), ::testing::HasSubstr("is lost"));
    }
    PollFor(absl::Seconds(20));
    for (const int side : sides) {
      EXPECT_TRUE(peers_[side]->rail_health(1).lost);
      EXPECT_EQ(peers_[side]->rail_health(1).failovers, 0U) << "it was never up";
    }
    cables_[1]->plugged = true;
    PollFor(absl::Seconds(20));
    for (const auto& peer : peers_) {
      EXPECT_TRUE(peer->rail_health(1).up);
      EXPECT_FALSE(peer->rail_health(1).lost);
      EXPECT_TRUE(peer->rail_health(0).up);
    }
  }
}

// Also if the note is lost with the rail that carries it; and no longer than needed.
TEST_F(DownAtStartTest, ANewAddressReachesThePeerOverAnotherRail) {
  Start({0, 1});
  PollFor(absl::Seconds(2));
  EXPECT_TRUE(links_[1][1]->peer_moved_to.empty());
  links_[0][1]->moved_to = "there";
  ASSERT_TRUE(peers_[0]->Poll(now_).ok());
  cables_[0]->Cut();
  cables_[0]->plugged = true;
  PollFor(absl::Seconds(5));
  EXPECT_THAT(links_[1][1]->peer_moved_to, ::testing::Each("there"));
  EXPECT_THAT(links_[1][1]->peer_moved_to.size(),
              ::testing::AllOf(::testing::Ge(1), ::testing::Le(6)));
  EXPECT_TRUE(links_[1][0]->peer_moved_to.empty() && links_[0][1]->peer_moved_to.empty());
  cables_[1]->plugged = true;
  PollFor(absl::Seconds(2));
  const size_t told = links_[1][1]->peer_moved_to.size();
  PollFor(absl::Seconds(10));
  EXPECT_TRUE(peers_[0]->rail_health(1).up);
  EXPECT_EQ(links_[1][1]->peer_moved_to.size(), told);
}

TEST_F(LateRailTest, ARailThatConnectsInTimeWasNeverLost) {
  cables_[0]->plugged = true;
  PollFor(absl::Seconds(5));
  cables_[1]->plugged = true;
  PollFor(absl::Minutes(1));
  EXPECT_EQ(peer_->rail_health(1).failovers + peer_->rail_health(1).returns, 0U);
}

}  // namespace
}  // namespace railhead::rails
