// SPDX-License-Identifier: Apache-2.0
//
// Round trips over TCP on the loopback, which every machine has.
#include "runtime/preflight/ping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/testing/tcp_pair.h"

namespace railhead::preflight {
namespace {

using ::testing::HasSubstr;
using transport::Link;

constexpr absl::Duration kPatience = absl::Seconds(20);

class PingTest : public ::testing::Test {
 protected:
  PingTest() {
    railhead::testing::TcpPair pair = railhead::testing::ConnectedTcp();
    a_ = std::move(pair.a);
    b_ = std::move(pair.b);
  }

  std::unique_ptr<Link> a_;
  std::unique_ptr<Link> b_;
};

// A path of which one direction swallows large frames.
class NarrowLink final : public Link {
 public:
  explicit NarrowLink(Link& link) : link_(link) {}
  absl::StatusOr<bool> TrySend(const transport::FrameHeader& header,
                               absl::Span<const std::byte> payload) override {
    if (payload.size() > 1000) return true;
    return link_.TrySend(header, payload);
  }
  Report Poll(transport::FrameSink sink) override { return link_.Poll(sink); }
  bool Flushed() const override { return link_.Flushed(); }
  Load load() const override { return link_.load(); }
  absl::Status Arm(transport::Wake wake) override { return link_.Arm(wake); }
  absl::StatusOr<bool> WakeBy(int epoll, void* tag) override { return link_.WakeBy(epoll, tag); }
  void Answer(absl::Time now) override { link_.Answer(now); }
  size_t max_payload() const override { return link_.max_payload(); }
  void Drop(absl::string_view why) override { link_.Drop(why); }
  bool connected() const override { return link_.connected(); }
  absl::StatusOr<bool> Reconnect(absl::Time now) override { return link_.Reconnect(now); }
  const transport::LinkStats& stats() const override { return link_.stats(); }

 private:
  Link& link_;
};

TEST_F(PingTest, LargeFramesThatDoNotPassAreFoundInBothDirections) {
  for (const bool narrow_begins : {true, false}) {
    NarrowLink narrow(*a_);
    absl::StatusOr<PingResult> theirs = absl::UnknownError("");
    std::thread other([&] { theirs = Ping(*b_, !narrow_begins, absl::Seconds(10)); });
    const absl::StatusOr<PingResult> ours = Ping(narrow, narrow_begins, absl::Seconds(10));
    other.join();
    ASSERT_TRUE(ours.ok()) << ours.status();
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    EXPECT_EQ((narrow_begins ? ours : theirs)->large.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_GT((narrow_begins ? ours : theirs)->time, absl::ZeroDuration());
    a_.reset();
    railhead::testing::TcpPair pair = railhead::testing::ConnectedTcp();
    a_ = std::move(pair.a);
    b_ = std::move(pair.b);
  }
}

TEST_F(PingTest, WhoBeginsGetsATimeAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<PingResult> answer = absl::UnknownError("");
    std::thread other([&] { answer = Ping(*b_, false, kPatience); });
    const absl::StatusOr<PingResult> result = Ping(*a_, true, kPatience);
    other.join();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(result->time, absl::ZeroDuration());
    EXPECT_TRUE(result->large.ok()) << result->large;
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->time, absl::ZeroDuration());
    EXPECT_TRUE(answer->large.ok()) << answer->large;
  }
}

TEST_F(PingTest, SilenceEndsAtTheDeadlineOnBothSides) {
  for (const bool begins : {true, false}) {
    const absl::Status status = Ping(*a_, begins, absl::Milliseconds(50)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(status.message(), "it does not answer");
  }
}

// As where many processes share the cores: a turn passes before each answer.
TEST_F(PingTest, ASlowPeerIsNoSilentOne) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      std::string got;
      EXPECT_TRUE(b_->Poll([&](const transport::FrameHeader&, absl::Span<const std::byte> payload) {
                      got.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
                      return true;
                    }).moved.ok());
      absl::SleepFor(absl::Milliseconds(got.empty() ? 1 : 300));
      if (got.empty()) continue;
      EXPECT_TRUE(*b_->TrySend({}, {reinterpret_cast<const std::byte*>(got.data()), got.size()}));
    }
  });
  const absl::Time start = MonotonicNow();
  const absl::StatusOr<PingResult> result = Ping(*a_, true, absl::Seconds(5));
  EXPECT_GT(MonotonicNow() - start, absl::Seconds(5));
  done = true;
  other.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->time, absl::Milliseconds(300));
}

TEST_F(PingTest, AWrongAnswerIsNotTakenForTheRightOne) {
  WireWriter writer;
  writer.U64(77);
  const std::string wrong = writer.Take();
  ASSERT_TRUE(*b_->TrySend({}, {reinterpret_cast<const std::byte*>(wrong.data()), wrong.size()}));
  ASSERT_TRUE(b_->Push().ok());
  const absl::Status status = Ping(*a_, true, kPatience).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("answered 77 instead of 0"));
}

TEST_F(PingTest, ALostLinkSaysWhy) {
  b_.reset();
  const absl::Status status = Ping(*a_, false, kPatience).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

}  // namespace
}  // namespace railhead::preflight
