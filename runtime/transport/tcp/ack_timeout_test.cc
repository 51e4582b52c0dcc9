// SPDX-License-Identifier: Apache-2.0
//
// When a connection without acknowledgements counts as lost; the connection of a slow reader
// does not.
#include "runtime/transport/tcp/ack_timeout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/testing/tcp_pair.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/tcp_links_for_test.h"

namespace railhead::transport {
namespace {

using Pair = railhead::testing::TcpPair;

// A peer that computes does not read. Its window closes, which must not look like a dead network.
TEST(TcpTest, APeerThatDoesNotReadForLongIsNotDead) {
  const Pair pair = Connected();
  const std::string payload(pair.a->max_payload(), 'x');
  const absl::Time end = MonotonicNow() + absl::Seconds(3);
  uint64_t frames = 0;
  while (MonotonicNow() < end) {
    const absl::StatusOr<bool> taken = pair.a->TrySend({0, frames}, Bytes(payload));
    ASSERT_TRUE(taken.ok()) << taken.status();
    if (*taken) ++frames;
    const absl::StatusOr<bool> polled = Drop(*pair.a);
    ASSERT_TRUE(polled.ok()) << polled.status();
    absl::SleepFor(absl::Milliseconds(5));
  }
  uint64_t arrived = 0;
  const absl::Time deadline = In(20);
  while (arrived < frames && MonotonicNow() < deadline) {
    ASSERT_TRUE(Drop(*pair.a).ok());
    ASSERT_TRUE(pair.b
                    ->Poll([&](const FrameHeader& header, absl::Span<const std::byte>) {
                      EXPECT_EQ(header.offset, arrived++);
                      return true;
                    })
                    .moved.ok());
  }
  EXPECT_EQ(arrived, frames);
}

class PulseTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kRoundTrip = absl::Milliseconds(5);
  // Looks every 10 ms for so long at a connection that was silent for `silent` before.
  bool StopsWithin(absl::Duration time, bool in_flight, absl::Duration silent,
                   absl::Duration round_trip = kRoundTrip) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(10)) {
      const uint32_t retransmits = t > absl::Milliseconds(200) ? 1 : 0;
      if (ack_timeout_.Stopped({in_flight, retransmits, silent + t, round_trip}, now_ + t))
        return true;
    }
    now_ += time;
    return false;
  }
  AckTimeout ack_timeout_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(PulseTest, SilenceAfterSendingIsTheEnd) {
  EXPECT_FALSE(StopsWithin(absl::Milliseconds(290), true, absl::ZeroDuration()));
}
TEST_F(PulseTest, LongerSilenceIsTheEnd) {
  EXPECT_TRUE(StopsWithin(absl::Milliseconds(330), true, absl::ZeroDuration()));
}
TEST_F(PulseTest, ARestBeforeItDoesNotCount) {
  EXPECT_FALSE(StopsWithin(absl::Seconds(60), false, absl::ZeroDuration()));
  EXPECT_FALSE(StopsWithin(absl::Milliseconds(290), true, absl::Seconds(60)));
}
TEST_F(PulseTest, AcknowledgementsKeepItAlive) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(StopsWithin(absl::Milliseconds(250), true, absl::ZeroDuration()));
  }
}
TEST_F(PulseTest, AClosedWindowIsNoSilence) {
  EXPECT_FALSE(StopsWithin(absl::Seconds(60), false, absl::ZeroDuration()));
}
TEST_F(PulseTest, WhoHasNotLookedForLongBelievesTheKernel) {
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::ZeroDuration(), kRoundTrip}, now_));
  now_ += absl::Seconds(3);
  EXPECT_TRUE(ack_timeout_.Stopped({true, 3, absl::Seconds(3), kRoundTrip}, now_));
}
TEST_F(PulseTest, AnAnswerInTheTickOfTheLookIsOne) {
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::ZeroDuration(), kRoundTrip}, now_));
  // It is answered at once, nobody looks for a while, and something else has just been sent.
  now_ += absl::Milliseconds(390);
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::Milliseconds(392), kRoundTrip}, now_));
}
TEST_F(PulseTest, OverALongRoundTripOnlyARetransmissionTells) {
  EXPECT_FALSE(
      ack_timeout_.Stopped({true, 0, absl::Milliseconds(1), absl::Milliseconds(400)}, now_));
  now_ += absl::Milliseconds(390);
  EXPECT_FALSE(
      ack_timeout_.Stopped({true, 0, absl::Milliseconds(391), absl::Milliseconds(400)}, now_));
  now_ += absl::Milliseconds(400);
  EXPECT_TRUE(
      ack_timeout_.Stopped({true, 1, absl::Milliseconds(791), absl::Milliseconds(400)}, now_));
}

}  // namespace
}  // namespace railhead::transport
