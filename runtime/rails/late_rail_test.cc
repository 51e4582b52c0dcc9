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

TEST_F(LateRailTest, ARailThatConnectsInTimeWasNeverLost) {
  cables_[0]->plugged = true;
  PollFor(absl::Seconds(5));
  cables_[1]->plugged = true;
  PollFor(absl::Minutes(1));
  EXPECT_EQ(peer_->rail_health(1).failovers + peer_->rail_health(1).returns, 0U);
}

}  // namespace
}  // namespace railhead::rails
