// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/base/page_changes.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/lanes.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/world_for_test.h"
#include "runtime/testing/ranks.h"

namespace railhead::shm {
namespace {

using railhead::testing::RunRanks;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

Bytes RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), size - at));
  }
  return bytes;
}

struct Case {
  rhDataType_t type;
  rhRedOp_t op;
  size_t count;
  bool in_place;
};

// Every rank's result must be what one call over all inputs gives, to the bit.
void RunCases(World& world, const std::vector<Case>& cases) {
  const auto ranks = static_cast<size_t>(world.ranks());
  std::vector<std::vector<Bytes>> inputs;  // [case][rank]
  std::vector<Bytes> expected;
  for (const Case& c : cases) {
    const size_t size = c.count * reduce::SizeOf(c.type);
    std::vector<Bytes>& row = inputs.emplace_back();
    std::vector<const std::byte*> pointers;
    for (size_t rank = 0; rank < ranks; ++rank) {
      row.push_back(RandomBytes(size, inputs.size() * 100 + rank));
    }
    for (const Bytes& input : row) pointers.push_back(input.data());
    Bytes& sum = expected.emplace_back(size);
    reduce::Reduce({c.type, c.op, world.ranks(), {}}, pointers, sum.data(), c.count,
                   reduce::Stores::kNormal);
  }
  const std::vector<std::string> wrong = RunRanks(world.ranks(), [&](int rank) -> std::string {
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      const Bytes& input = inputs[i][static_cast<size_t>(rank)];
      Bytes output = c.in_place ? input : Bytes(input.size());
      const std::byte* send = c.in_place ? output.data() : input.data();
      const absl::Status status = world.at(rank).AllReduce(
          {c.type, c.op, world.ranks(), {}}, send, output.data(), c.count, world.patience());
      if (!status.ok()) return std::string(status.message());
      if (output != expected[i]) {
        return absl::StrCat("case ", i, ": type ", c.type, ", operator ", c.op, ", ", c.count,
                            c.in_place ? " in place" : "");
      }
    }
    return "";
  });
  for (size_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(wrong[rank], "") << "rank " << rank;
}

class GroupTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  World world_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

TEST_P(GroupTest, EveryTypeAndOperator) {
  std::vector<Case> cases;
  for (int type = 0; type < 32; ++type) {
    for (int op = 0; op < 16; ++op) {
      const auto t = static_cast<rhDataType_t>(type);
      const auto o = static_cast<rhRedOp_t>(op);
      if (!reduce::CanReduce(t, o)) continue;
      cases.push_back({t, o, 1, false});
      cases.push_back({t, o, 1001, true});
      cases.push_back({t, o, 20011, false});
    }
  }
  ASSERT_GT(cases.size(), 200U);
  RunCases(world_, cases);
}

// One byte less, as many, and one more than every size at which something changes.
TEST_P(GroupTest, EverySizeAtABoundary) {
  std::vector<Case> cases;
  const auto ranks = static_cast<size_t>(world_.ranks());
  for (const size_t size : {size_t{2}, size_t{64}, 64 * ranks, 128 * ranks, size_t{4096},
                            size_t{8192}, size_t{16384}, size_t{131072}, size_t{262144},
                            size_t{524288}, size_t{1048576}, 3 * size_t{131072}, size_t{4194304}}) {
    for (const size_t count : {size - 1, size, size + 1}) {
      cases.push_back({rhUint8, rhSum, count, count % 2 == 0});
    }
    cases.push_back({rhFloat64, rhProd, size / 8 + 1, true});
  }
  RunCases(world_, cases);
}

TEST_P(GroupTest, AnySuccession) {
  std::mt19937 random(20261121);
  std::vector<Case> cases;
  for (int i = 0; i < 300; ++i) {
    const size_t largest = size_t{1} << (random() % 19);
    cases.push_back({random() % 2 == 0 ? rhFloat32 : rhBfloat16, rhAvg, 1 + random() % largest,
                     random() % 2 == 0});
  }
  RunCases(world_, cases);
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 8),
                                            ::testing::Bool()));

TEST(GroupErrors, NothingIsDoneForNothing) {
  World world(2, false);
  EXPECT_TRUE(world.at(0).AllReduce({}, nullptr, nullptr, 0, world.patience()).ok())
      << "without rank 1";
}

TEST(GroupErrors, WhoDoesNotComeIsNamed) {
  World world(3, false);
  std::vector<float> values(100000, 1);
  auto* data = reinterpret_cast<std::byte*>(values.data());
  const auto results = RunRanks(3, [&](int rank) {
    if (rank == 2) return absl::OkStatus();
    std::vector<float> own(values);
    return world.at(rank).AllReduce({}, reinterpret_cast<std::byte*>(own.data()),
                                    reinterpret_cast<std::byte*>(own.data()), own.size(),
                                    {absl::ZeroDuration(), absl::Milliseconds(100), nullptr});
  });
  // On a busy machine the other rank may be late as well, and is named beside it.
  static_cast<void>(data);
  for (int rank = 0; rank < 2; ++rank) {
    const absl::Status& status = results[static_cast<size_t>(rank)];
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 (1 chunks behind)"));
  }
}

TEST(GroupErrors, WhoComesWhileAllAreAskedIsNotLate) {
  World world(2, false);
  std::atomic<bool> comes{false};
  std::atomic<bool> done{false};
  const std::function<bool()> go_on = [&] {
    comes = true;
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    while (!done && MonotonicNow() < deadline) std::this_thread::yield();
    return false;
  };
  const auto results = RunRanks(2, [&](int rank) {
    while (rank == 1 && !comes) std::this_thread::yield();
    Patience patience = world.patience();
    if (rank == 0) patience = {absl::ZeroDuration(), absl::Milliseconds(50)};
    if (rank == 0) patience.go_on = &go_on;
    float value = 1;
    absl::Status status =
        world.at(rank).AllReduce({}, reinterpret_cast<std::byte*>(&value),
                                 reinterpret_cast<std::byte*>(&value), 1, patience);
    if (rank == 1) done = true;
    return status;
  });
  for (const absl::Status& status : results) EXPECT_TRUE(status.ok()) << status;
}

TEST(GroupErrors, AJobThatHasFailedEndsTheWait) {
  World world(2, true);
  std::atomic<bool> failed{false};
  const auto results = RunRanks(2, [&](int rank) {
    if (rank == 1) {
      absl::SleepFor(absl::Milliseconds(50));
      failed = true;
      return absl::OkStatus();
    }
    float value = 1;
    return world.at(0).AllReduce({}, reinterpret_cast<std::byte*>(&value),
                                 reinterpret_cast<std::byte*>(&value), 1,
                                 {absl::ZeroDuration(), absl::Seconds(60), &failed});
  });
  EXPECT_TRUE(absl::IsCancelled(results[0])) << results[0];
}

TEST(SegmentTest, OthersMapTheSameMemory) {
  const Segment mine = *Segment::Create(1U << 20U);
  EXPECT_EQ(mine.data()[12345], std::byte{0});
  const absl::StatusOr<Segment> theirs = Segment::Open(net::Fd(dup(mine.fd())), 1U << 20U);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  mine.data()[12345] = std::byte{7};
  EXPECT_EQ(theirs->data()[12345], std::byte{7});
  EXPECT_NE(ftruncate(mine.fd(), 10), 0) << "it could pull the ground from under the others";
}

// A process has a segment for each communicator.
TEST(SegmentTest, TheMemoryOutlivesItsFile) {
  Segment mine = *Segment::Create(1U << 20U);
  const absl::StatusOr<Segment> theirs = Segment::Open(net::Fd(dup(mine.fd())), 1U << 20U);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->fd(), -1);
  mine.CloseFile();
  EXPECT_EQ(mine.fd(), -1);
  mine.data()[12345] = std::byte{7};
  EXPECT_EQ(theirs->data()[12345], std::byte{7});
}

TEST(SegmentTest, OthersDoNotReachWholePagesThatAreWithdrawn) {
  constexpr size_t kSize = 1U << 20U;
  const Segment mine = *Segment::Create(kSize);
  const Segment theirs = *Segment::Open(net::Fd(dup(mine.fd())), kSize);
  const absl::Span<std::byte> all(mine.data(), kSize);
  std::memset(all.data(), 1, kSize);
  const uint64_t changes = page_changes;
  EXPECT_TRUE(mine.IsShared(all));
  ASSERT_EQ(mine.Withdraw(all.subspan(100, 10)), absl::OkStatus());
  EXPECT_TRUE(mine.IsShared(all)) << "no whole page";
  EXPECT_EQ(page_changes, changes);
  ASSERT_EQ(mine.Withdraw(all.subspan(100, 3 * kPage)), absl::OkStatus());
  EXPECT_GT(page_changes, changes) << "registrations are of other pages";
  EXPECT_FALSE(mine.IsShared(all.subspan(kPage, 1)));
  EXPECT_FALSE(mine.IsShared(all.subspan(3 * kPage - 1, kPage)));
  EXPECT_TRUE(mine.IsShared(all.subspan(0, kPage)));
  EXPECT_TRUE(mine.IsShared(all.subspan(3 * kPage)));
  std::memset(theirs.data(), 2, kSize);
  for (size_t i = 0; i < kSize; ++i) {
    const bool withdrawn = i >= kPage && i < 3 * kPage;
    ASSERT_EQ(all[i], std::byte{static_cast<uint8_t>(withdrawn ? 0 : 2)}) << i;
  }
  std::memset(all.data(), 3, kSize);
  EXPECT_EQ(theirs.data()[kPage], std::byte{2});
  EXPECT_EQ(theirs.data()[3 * kPage], std::byte{3});
}

TEST(LanesTest, ARankThatFailsIsToldToThoseThatHaveReadItsData) {
  std::vector<Lane> memory(3);
  std::vector<Lanes> lanes;
  for (int rank = 0; rank < 3; ++rank) lanes.emplace_back(absl::MakeSpan(memory), rank);
  for (Lanes& each : lanes) each.Expect(7, {}, 0);
  EXPECT_EQ(lanes[0].NoneWithdrew(9), absl::OkStatus());
  lanes[1].Withdraw();
  EXPECT_EQ(lanes[0].NoneWithdrew(6), absl::OkStatus()) << "the call before was right";
  for (const int64_t chunk : {7, 9}) {
    EXPECT_THAT(std::string(lanes[2].NoneWithdrew(chunk).message()),
                HasSubstr("rank 1 has failed in this call"));
  }
}

TEST(SegmentTest, WhatIsNotAsAnnouncedIsRefused) {
  const Segment mine = *Segment::Create(1U << 20U);
  EXPECT_FALSE(Segment::Open(net::Fd(dup(mine.fd())), 2U << 20U).ok());
  EXPECT_FALSE(Segment::Open(net::Fd(dup(0)), 4096).ok());
}

TEST(SegmentTest, TooMuchIsAClearError) {
  const absl::Status status = Segment::Create(size_t{1} << 50U).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("raise the pod's memory limit"));
}

}  // namespace
}  // namespace railhead::shm
