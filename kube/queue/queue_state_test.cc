// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/queue_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace railhead::kube {
namespace {

using ::testing::Optional;

constexpr BackoffOptions kBackoff = {absl::Seconds(1), absl::Seconds(8)};

absl::Time Second(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
QueueState MakeQueue() {
  return QueueState(kBackoff, [] { return 0.999999999; });
}

TEST(QueueStateTest, OneItemIsDoneOnceHoweverOftenItWasAdded) {
  QueueState queue = MakeQueue();
  queue.Add("a", Second(0));
  queue.Add("b", Second(0));
  queue.Add("a", Second(1));
  EXPECT_EQ(queue.waiting(), 2U);
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("a")));
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("b")));
  EXPECT_EQ(queue.Take(Second(2)), std::nullopt);
}

TEST(QueueStateTest, WhatIsAddedWhileAtWorkIsDoneAgainAfterwards) {
  QueueState queue = MakeQueue();
  queue.Add("a", Second(0));
  queue.Take(Second(0));
  queue.Add("a", Second(1));
  queue.Add("a", Second(2));
  EXPECT_EQ(queue.Take(Second(3)), std::nullopt);
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
  queue.Finish("a");
  EXPECT_THAT(queue.Take(Second(3)), Optional(std::string("a")));
  queue.Finish("a");
  EXPECT_EQ(queue.Take(Second(99)), std::nullopt);
}

TEST(QueueStateTest, TheEarlierOfTwoTimesCounts) {
  QueueState queue = MakeQueue();
  queue.Add("a", Second(10));
  queue.Add("a", Second(5));
  queue.Add("a", Second(7));
  EXPECT_EQ(queue.NextDue(), Second(5));
  EXPECT_EQ(queue.Take(Second(4.9)), std::nullopt);
  EXPECT_THAT(queue.Take(Second(5)), Optional(std::string("a")));
  queue.Finish("a");
  EXPECT_EQ(queue.Take(Second(99)), std::nullopt);
}

TEST(QueueStateTest, FailuresInARowMakeThePauseLonger) {
  QueueState queue = MakeQueue();
  absl::Time now = Second(0);
  queue.Add("a", now);
  for (const int seconds : {1, 2, 4, 8, 8}) {
    ASSERT_THAT(queue.Take(now), Optional(std::string("a")));
    const absl::Duration pause = queue.Retry("a", now);
    EXPECT_NEAR(absl::ToDoubleSeconds(pause), seconds, 1e-6);
    EXPECT_EQ(queue.NextDue(), now + pause);
    EXPECT_EQ(queue.Take(now + pause - absl::Nanoseconds(1)), std::nullopt);
    now += pause;
  }
  ASSERT_TRUE(queue.Take(now));
  queue.Finish("a");
  queue.Add("a", now);
  ASSERT_TRUE(queue.Take(now));
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.Retry("a", now)), 1, 1e-6);
}

TEST(QueueStateTest, NewsDoNotCutThePauseOfAFailedItem) {
  QueueState queue = MakeQueue();
  queue.Add("a", Second(0));
  queue.Take(Second(0));
  queue.Add("a", Second(0.1));
  const absl::Time first = Second(0.2) + queue.Retry("a", Second(0.2));
  EXPECT_NEAR(absl::ToDoubleSeconds(first - Second(0.2)), 1, 1e-6);
  EXPECT_EQ(queue.NextDue(), first);
  queue.Add("a", Second(0.3));
  queue.Add("a", Second(90));
  EXPECT_EQ(queue.NextDue(), first);
  EXPECT_EQ(queue.waiting(), 1U);
  // One look covers the failure and all news; the next failure is the second in a row.
  ASSERT_TRUE(queue.Take(first));
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.Retry("a", first)), 2, 1e-6);
  ASSERT_TRUE(queue.Take(first + absl::Seconds(2)));
  queue.Finish("a");
  queue.Add("a", first);
  EXPECT_EQ(queue.NextDue(), first);  // the pauses are forgotten
}

TEST(QueueStateTest, WhatRestsIsLookedAtAgainAndNotEarlier) {
  QueueState queue = MakeQueue();
  queue.Add("a", Second(0));
  queue.Take(Second(0));
  queue.Retry("a", Second(0));
  ASSERT_TRUE(queue.Take(Second(1)));
  queue.Add("a", Second(1));
  queue.Rest("a", Second(11));
  queue.Add("a", Second(2));
  EXPECT_EQ(queue.Take(Second(10.9)), std::nullopt);
  ASSERT_THAT(queue.Take(Second(11)), Optional(std::string("a")));
  EXPECT_NEAR(absl::ToDoubleSeconds(queue.Retry("a", Second(11))), 1, 1e-6);  // the first again
}

TEST(QueueStateTest, FinishingWhatIsNotAtWorkDoesNothing) {
  QueueState queue = MakeQueue();
  queue.Finish("a");
  queue.Rest("a", Second(9));
  EXPECT_EQ(queue.Retry("a", Second(0)), absl::ZeroDuration());
  EXPECT_EQ(queue.waiting(), 0U);
  queue.Add("a", Second(1));
  queue.Finish("a");
  queue.Rest("a", Second(9));
  EXPECT_EQ(queue.Retry("a", Second(0)), absl::ZeroDuration());
  EXPECT_EQ(queue.NextDue(), Second(1));
}

// Beside a model that keeps one line for each item and looks at all of them every time.
TEST(QueueStateTest, DoesWhatAListWouldDo) {
  struct Line {
    bool at_work = false;
    std::optional<absl::Time> due;
    absl::Time not_before = absl::InfinitePast();
    int added = 0;  // when it began to wait, as a count
    int failures = 0;
  };
  std::mt19937 random(20261122);
  QueueState queue(kBackoff, [] { return 0.0; });
  std::map<std::string, Line> model;
  absl::Time now = Second(0);
  int count = 0;
  int taken = 0;
  for (int step = 0; step < 200'000; ++step) {
    const std::string item(1, static_cast<char>('a' + random() % 6));
    Line& line = model[item];
    const auto make_due = [&line, &count](absl::Time due) {
      if (!line.due) line.added = ++count;
      line.due = std::max(std::min(line.due.value_or(due), due), line.not_before);
    };
    const auto pause = [&line, &make_due](absl::Time until) {
      line.not_before = until;
      make_due(until);
      line.at_work = false;
    };
    switch (random() % 6) {
      case 0: {
        const absl::Time due = now + absl::Seconds(random() % 3);
        queue.Add(item, due);
        make_due(due);
        break;
      }
      case 1: {
        auto best = model.end();
        for (auto it = model.begin(); it != model.end(); ++it) {
          if (it->second.at_work || !it->second.due || *it->second.due > now) continue;
          if (best == model.end() || *it->second.due < *best->second.due ||
              (*it->second.due == *best->second.due && it->second.added < best->second.added)) {
            best = it;
          }
        }
        const std::optional<std::string> got = queue.Take(now);
        ASSERT_EQ(got.has_value(), best != model.end()) << step;
        if (!got) break;
        ++taken;
        ASSERT_EQ(*got, best->first) << step;
        best->second.at_work = true;
        best->second.due.reset();
        best->second.not_before = absl::InfinitePast();
        break;
      }
      case 2:
        queue.Finish(item);
        if (line.at_work) line.at_work = false, line.failures = 0;
        break;
      case 3:
        queue.Retry(item, now);
        if (!line.at_work) break;
        ++line.failures;
        pause(now + absl::Seconds(std::min(8, 1 << std::min(line.failures - 1, 10))) / 2);
        break;
      case 4:
        queue.Rest(item, now + absl::Seconds(3));
        if (!line.at_work) break;
        line.failures = 0;
        pause(now + absl::Seconds(3));
        break;
      default:
        now += absl::Milliseconds(random() % 700);
    }
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [name, other] : model) {
      if (!other.at_work && other.due) next = std::min(next, *other.due);
    }
    ASSERT_EQ(queue.NextDue(), next) << step;
  }
  EXPECT_GT(taken, 1000);
}

// Thousands of items of one namespace do not delay those of another.
TEST(QueueStateTest, GroupsTakeTurns) {
  QueueState queue(
      kBackoff, [] { return 0.5; }, NamespaceOfItem);
  for (int i = 0; i < 1000; ++i) queue.Add("loud/" + std::to_string(i), Second(0));
  queue.Add("quiet/a", Second(1));
  queue.Add("quiet/b", Second(1));
  queue.Add("later/c", Second(3));
  EXPECT_EQ(queue.waiting(), 1003U);
  EXPECT_THAT(queue.Take(Second(0)), Optional(std::string("loud/0")));
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("quiet/a")));
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("loud/1")));
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("quiet/b")));
  EXPECT_THAT(queue.Take(Second(2)), Optional(std::string("loud/2")));
  EXPECT_EQ(queue.waiting(), 998U);
}

// One item that is due again at once, all the time, does not come before the others.
TEST(QueueStateTest, AGroupThatComesBackIsBehindThoseThatWait) {
  QueueState queue(
      kBackoff, [] { return 0.5; }, NamespaceOfItem);
  queue.Add("loud/a", Second(0));
  queue.Add("quiet/b", Second(0));
  queue.Add("third/c", Second(0));
  std::vector<std::string> taken;
  for (int i = 0; i < 6; ++i) {
    taken.push_back(*queue.Take(Second(0)));
    queue.Finish(taken.back());
    queue.Add(taken.back(), Second(0));
  }
  EXPECT_EQ(taken, (std::vector<std::string>{"loud/a", "quiet/b", "third/c", "loud/a", "quiet/b",
                                             "third/c"}));
}

TEST(QueueStateTest, ClearForgetsAllItemsThatWaitAndEndsThoseAtWork) {
  QueueState queue(
      kBackoff, [] { return 0.5; }, NamespaceOfItem);
  queue.Add("a/1", Second(0));
  queue.Add("a/2", Second(0));
  queue.Add("b/1", Second(5));
  EXPECT_THAT(queue.Take(Second(0)), Optional(std::string("a/1")));
  queue.Add("a/1", Second(0));
  queue.Clear();
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
  queue.Finish("a/1");
  EXPECT_EQ(queue.Take(Second(9)), std::nullopt);
  queue.Add("a/1", Second(9));
  queue.Add("b/1", Second(8));
  EXPECT_THAT(queue.Take(Second(9)), Optional(std::string("b/1")));
  EXPECT_THAT(queue.Take(Second(9)), Optional(std::string("a/1")));
}

}  // namespace
}  // namespace railhead::kube
