// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kube/monotonic.h"

namespace railhead::kube {
namespace {

using ::testing::Optional;

constexpr BackoffOptions kShortBackoff = {absl::Milliseconds(2), absl::Milliseconds(8)};
constexpr absl::Duration kPatience = absl::Seconds(60);

TEST(WorkQueueTest, TakeWaitsForWhatIsAddedAndForItsTime) {
  WorkQueue queue(kShortBackoff);
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), std::nullopt);
  std::thread adder([&queue] { queue.Add("soon"); });
  EXPECT_THAT(queue.Take(kPatience), Optional(std::string("soon")));
  adder.join();
  const absl::Time begin = MonotonicNow();
  queue.AddAfter("late", absl::Milliseconds(30));
  EXPECT_THAT(queue.Take(kPatience), Optional(std::string("late")));
  EXPECT_GE(MonotonicNow() - begin, absl::Milliseconds(30));
  EXPECT_GT(queue.Retry("late"), absl::ZeroDuration());
  EXPECT_THAT(queue.Take(kPatience), Optional(std::string("late")));
}

TEST(WorkQueueTest, NewsMeetAPauseAndAreSeenAfterIt) {
  std::atomic<int> seconds{0};  // what the clock shows
  WorkQueue queue(
      {absl::Seconds(10), absl::Seconds(10)}, [] { return 0.0; },
      [&seconds] { return absl::UnixEpoch() + absl::Seconds(seconds.load()); });
  const auto take = [&queue] { return queue.Take(absl::ZeroDuration()); };
  queue.Add("a");
  EXPECT_THAT(take(), Optional(std::string("a")));
  EXPECT_EQ(queue.Retry("a"), absl::Seconds(5));
  queue.Add("a");
  seconds = 4;
  EXPECT_EQ(take(), std::nullopt);
  seconds = 5;
  EXPECT_THAT(take(), Optional(std::string("a")));
  queue.Rest("a", absl::Seconds(3));
  queue.Add("a");
  EXPECT_EQ(take(), std::nullopt);
  seconds = 8;
  EXPECT_THAT(take(), Optional(std::string("a")));
}

TEST(WorkQueueTest, WhatIsDueOvertakesWhatIsNot) {
  std::atomic<int> seconds{0};  // what the clock shows
  WorkQueue queue(
      kShortBackoff, [] { return 0.0; },
      [&seconds] { return absl::UnixEpoch() + absl::Seconds(seconds.load()); });
  queue.AddAfter("late", absl::Seconds(5));
  queue.Add("soon");
  EXPECT_THAT(queue.Take(absl::ZeroDuration()), Optional(std::string("soon")));
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), std::nullopt);
  seconds = 5;
  EXPECT_THAT(queue.Take(absl::ZeroDuration()), Optional(std::string("late")));
}

TEST(WorkQueueTest, ShutDownWakesThoseWhoWaitAndHandsOutNothing) {
  WorkQueue queue(kShortBackoff);
  std::thread waiting([&queue] { EXPECT_EQ(queue.Take(absl::Hours(1)), std::nullopt); });
  std::thread forever([&queue] { EXPECT_EQ(queue.Take(absl::InfiniteDuration()), std::nullopt); });
  queue.ShutDown();
  waiting.join();
  forever.join();
  EXPECT_TRUE(queue.is_shut_down());
  queue.Add("a");
  EXPECT_EQ(queue.Take(kPatience), std::nullopt);
}

// Every item is a counter that adders raise before they add it; a worker puts down what it read. In
// the end every last value was seen, and nobody ever met another at the same item.
TEST(WorkQueueTest, NothingAddedIsLostAndNothingIsInTwoHands) {
  constexpr size_t kItems = 5;
  WorkQueue queue(kShortBackoff);
  std::array<std::atomic<int>, kItems> wanted{};
  std::array<std::atomic<int>, kItems> seen{};
  std::array<std::atomic<int>, kItems> hands{};
  std::atomic<int> collisions{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&] {
      int turn = 0;
      while (!queue.is_shut_down()) {
        const std::optional<std::string> item = queue.Take(kPatience);
        if (!item) continue;
        const size_t i = std::stoul(*item);
        if (hands.at(i).fetch_add(1) != 0) ++collisions;
        std::this_thread::yield();
        const bool fails = ++turn % 7 == 0;
        if (!fails) seen.at(i) = wanted.at(i).load();
        hands.at(i).fetch_sub(1);
        fails ? static_cast<void>(queue.Retry(*item)) : queue.Finish(*item);
      }
    });
  }
  std::vector<std::thread> adders;
  for (int adder = 0; adder < 2; ++adder) {
    adders.emplace_back([&] {
      for (size_t n = 0; n < 5000; ++n) {
        ++wanted.at(n % kItems);
        queue.Add(std::to_string(n % kItems));
      }
    });
  }
  for (std::thread& adder : adders) adder.join();
  const absl::Time deadline = MonotonicNow() + kPatience;
  const auto all_seen = [&] {
    for (size_t i = 0; i < kItems; ++i) {
      if (seen.at(i) != wanted.at(i)) return false;
    }
    return true;
  };
  while (!all_seen() && MonotonicNow() < deadline) std::this_thread::yield();
  EXPECT_TRUE(all_seen());
  queue.ShutDown();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collisions, 0);
}

}  // namespace
}  // namespace railhead::kube
