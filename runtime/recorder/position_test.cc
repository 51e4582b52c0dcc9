// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/position.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace railhead::recorder {
namespace {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;

absl::Time SecondsIn(double second) {
  return absl::FromUnixSeconds(1700000000) + absl::Seconds(second);
}

Position Example() {
  Position position;
  position.collectives = 13;
  position.recent = {12, {Call(1), Call(2), Call(3), Call(4)}};
  Doing& last = position.last.emplace();
  last.number = 12;
  last.collective = Collective::kReduce;
  last.algorithm = Algorithm::kBinomial;
  last.call = Call({Collective::kReduce, rhFloat32, rhSum, 2, 5});
  last.bytes = 20;
  last.state = State::kRunning;
  last.moved = {1, std::numeric_limits<uint64_t>::max()};
  last.age = absl::Milliseconds(1500);
  last.still = absl::Microseconds(7);
  last.way = Way{true, 4, "rail 1 (eth1, tcp)"};
  position.transfers.still = absl::Seconds(70);
  position.transfers.from_any = true;
  position.transfers.under_way = {{1, 70000}, 2};
  position.transfers.unfinished = {{3}, 100};
  return position;
}

TEST(PositionTest, Travels) {
  const absl::StatusOr<Position> parsed = ParsePosition(Encode(Example()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(Encode(*parsed), Encode(Example()));
  EXPECT_EQ(parsed->collectives, 13U);
  EXPECT_EQ(parsed->recent.newest, 12U);
  EXPECT_EQ(parsed->recent.calls, Example().recent.calls);
  EXPECT_EQ(parsed->last->number, 12U);
  EXPECT_EQ(parsed->last->collective, Collective::kReduce);
  EXPECT_EQ(parsed->last->algorithm, Algorithm::kBinomial);
  EXPECT_EQ(parsed->last->call, Example().last->call);
  EXPECT_EQ(parsed->last->moved, Example().last->moved);
  EXPECT_EQ(parsed->last->age, absl::Milliseconds(1500));
  EXPECT_EQ(parsed->last->still, absl::Microseconds(7));
  EXPECT_EQ(parsed->last->way->rail, "rail 1 (eth1, tcp)");
  EXPECT_EQ(parsed->transfers, Example().transfers);
  EXPECT_FALSE(ParsePosition(Encode(Position()))->last.has_value());
}

TEST(PositionTest, RecentAreTheLastCollectives) {
  std::vector<Operation> operations(4);
  for (size_t i = 0; i < operations.size(); ++i) operations[i].number = 4 + i;
  operations[0].call = Call(40);
  operations[1].number = 6;
  operations[1].call = Call(60);
  operations[2].number = 1;
  operations[2].collective = Collective::kSendReceive;
  operations[3].call = Call(70);
  // Number 5 is being written, and what is before it has no place any more.
  const Recent recent = RecentOf(operations);
  EXPECT_EQ(recent.newest, 7U);
  EXPECT_EQ(recent.calls, (std::vector<Call>{Call(70), Call(60)}));
  EXPECT_TRUE(RecentOf({}).calls.empty());
}

TEST(PositionTest, StaysBelowItsLimit) {
  Position position = Example();
  position.last->way->rail = std::string(1000, 'x');
  position.last->age = absl::InfiniteDuration();
  position.last->still = -absl::Seconds(1);
  position.last->awaited.assign(100, 1);
  position.transfers.under_way.ranks.assign(100, 1);
  position.transfers.unfinished.ranks.assign(100, 1);
  EXPECT_LE(Encode(position).size(), kPositionLimit);
  EXPECT_EQ(ParsePosition(Encode(position))->last->still, absl::ZeroDuration());
}

TEST(PositionTest, OtherBytesAreRefusedOrReadTheOnlyWay) {
  const std::string bytes = Encode(Example());
  EXPECT_FALSE(ParsePosition(bytes + "x").ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParsePosition(bytes.substr(0, size)).ok()) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\1', '\2', '\x7f', '\xff'}) {
      std::string other = bytes;
      other[at] = value;
      const absl::StatusOr<Position> parsed = ParsePosition(other);
      if (parsed.ok()) {
        EXPECT_EQ(Encode(*parsed), other) << at;
      }
    }
  }
}

// An operation that began at second 0.
Operation Running(uint64_t sequence, Traffic before = {}) {
  Operation operation;
  operation.sequence = sequence;
  operation.number = sequence - 1;
  operation.start = SecondsIn(0);
  operation.moved = before;
  return operation;
}

class StillnessTest : public ::testing::Test {
 protected:
  Stillness stillness_{absl::Seconds(10), absl::Seconds(20), {"rail 0", "rail 1"}};
  std::vector<Flow> flows_ = {{4, 0, {100, 100}}, {4, 1, {0, 0}}, {5, 0, {0, 0}}};

  bool Look(double second, const std::optional<Operation>& last) {
    return stillness_.Look(SecondsIn(second), last, flows_);
  }
  Doing Last(double second, const Operation& operation) {
    return *stillness_.At(SecondsIn(second), operation, 0, flows_).last;
  }
};

TEST_F(StillnessTest, BeginsAfterThePatience) {
  Look(-2, std::nullopt);
  const Operation operation = Running(1, {100, 100});
  for (int second = 1; second < 100; ++second) {
    EXPECT_EQ(Look(second, operation), second >= 10) << second;
  }
  EXPECT_EQ(Last(100, operation).still, absl::Seconds(100));
  EXPECT_EQ(Last(100, operation).moved, Traffic());
  EXPECT_FALSE(Last(100, operation).way.has_value());
}

TEST_F(StillnessTest, WhatMovesDoesNotStandStill) {
  const Operation operation = Running(1, {100, 100});
  for (int second = 1; second < 50; ++second) {
    ++flows_[1].moved.sent;
    EXPECT_FALSE(Look(second, operation));
  }
  for (int second = 50; second < 59; ++second) EXPECT_FALSE(Look(second, operation));
  EXPECT_TRUE(Look(59, operation));
  const Doing last = Last(60, operation);
  EXPECT_EQ(last.still, absl::Seconds(11));
  EXPECT_EQ(last.age, absl::Seconds(60));
  EXPECT_EQ(last.moved, (Traffic{49, 0}));
  EXPECT_FALSE(last.way->received);
  EXPECT_EQ(last.way->peer, 4);
  EXPECT_EQ(last.way->rail, "rail 1");
}

TEST_F(StillnessTest, WhatFollowsEachOtherDoesNotStandStill) {
  for (uint64_t second = 1; second < 100; ++second) {
    Operation operation = Running(second, {100, 100});
    operation.start = SecondsIn(static_cast<double>(second) - 0.5);
    EXPECT_FALSE(Look(static_cast<double>(second), operation));
  }
}

TEST_F(StillnessTest, BetweenOperationsNothingStandsStill) {
  Operation operation = Running(1);
  operation.state = State::kDone;
  operation.end = SecondsIn(1);
  operation.moved = {3, 4};
  for (int second = 1; second < 100; ++second) EXPECT_FALSE(Look(second, operation));
  EXPECT_EQ(Last(100, operation).age, absl::Seconds(99));
  EXPECT_EQ(Last(100, operation).moved, (Traffic{3, 4}));
}

TEST_F(StillnessTest, AProcessThatWasStoppedBlamesNobody) {
  const Operation operation = Running(1, {100, 100});
  for (int second = 1; second < 5; ++second) EXPECT_FALSE(Look(second, operation));
  EXPECT_FALSE(Look(1000, operation));
  EXPECT_FALSE(Look(1009, operation));
  EXPECT_TRUE(Look(1010, operation));
}

}  // namespace
}  // namespace railhead::recorder
