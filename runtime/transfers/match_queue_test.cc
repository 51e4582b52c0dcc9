// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/match_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

namespace railhead::transfers {
namespace {

// What it says of itself, one look at all of them after the other.
class PlainMatches {
 public:
  std::optional<int> Post(int source, int tag, int receive) {
    return Take({source, tag, receive}, arrivals_, receives_);
  }
  std::optional<int> Arrive(int source, int tag, int arrival) {
    return Take({source, tag, arrival}, receives_, arrivals_);
  }
  size_t receives() const { return receives_.size(); }
  size_t arrivals() const { return arrivals_.size(); }

 private:
  struct Entry {
    int source;
    int tag;
    int what;
  };
  // A message has no kAny, so it does not matter which of the two is the receive.
  static bool Fit(const Entry& a, const Entry& b) {
    const auto same = [](int x, int y) { return x == kAny || y == kAny || x == y; };
    return same(a.source, b.source) && same(a.tag, b.tag);
  }
  static std::optional<int> Take(const Entry& entry, std::vector<Entry>& from,
                                 std::vector<Entry>& else_to) {
    const auto found =
        std::find_if(from.begin(), from.end(), [&](const Entry& one) { return Fit(one, entry); });
    if (found == from.end()) {
      else_to.push_back(entry);
      return std::nullopt;
    }
    const int what = found->what;
    from.erase(found);
    return what;
  }

  std::vector<Entry> receives_;
  std::vector<Entry> arrivals_;
};

// A source or tag that counts the steps of all look-ups: comparisons and hashes.
struct Counted {
  Counted(int number = kAny) : value(number) {}  // NOLINT(google-explicit-constructor): as an int
  explicit operator uint32_t() const {
    ++steps;
    return static_cast<uint32_t>(value);
  }
  bool operator==(const Counted& other) const {
    ++steps;
    return value == other.value;
  }
  bool operator!=(const Counted& other) const { return !(*this == other); }
  bool operator<(const Counted& other) const {
    ++steps;
    return value < other.value;
  }

  int value;
  static inline uint64_t steps = 0;
};

// Neither waiting messages nor waiting receives slow down a match, whatever a receive can get. Each
// case has other numbers of sources and tags, from one to one for each entry.
TEST(MatchQueueTest, AMatchTakesAFewStepsForAnyNumberOfWaitingEntries) {
  constexpr int kWaiting = 40'000;
  constexpr double kMostSteps = 60;
  std::mt19937 random(1);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  for (const int sources : {1, 3, 1000, kWaiting}) {
    for (const int tags : {1, 3, 1000, kWaiting}) {
      for (const bool receives_wait : {false, true}) {
        MatchQueue<int, int, Counted> queue;
        // Of a third of the receives only the source is given, of a third only the tag.
        const auto post = [&](int source, int tag) {
          const int kind = below(3);
          return queue.Post(kind == 1 ? kAny : source, kind == 2 ? kAny : tag, 0).has_value();
        };
        const auto arrive = [&](int source, int tag) {
          return queue.Arrive(source, tag, 0).has_value();
        };
        const auto mean_steps = [&](int calls, auto call) {
          const uint64_t before = Counted::steps;
          for (int i = 0; i < calls; ++i) call();
          return static_cast<double>(Counted::steps - before) / calls;
        };
        const double filling = mean_steps(kWaiting, [&] {
          const int source = below(sources);
          const int tag = below(tags);
          receives_wait ? post(source, tag) : arrive(source, tag);
        });
        // No message has that source or tag.
        const double in_vain =
            mean_steps(1000, [&] { receives_wait ? arrive(sources, tags) : post(sources, tags); });
        const double matching = mean_steps(kWaiting, [&] {
          const int source = below(sources);
          const int tag = below(tags);
          receives_wait ? arrive(source, tag) : post(source, tag);
        });
        for (const double steps : {filling, in_vain, matching}) {
          EXPECT_LE(steps, kMostSteps)
              << sources << " sources, " << tags << " tags, "
              << (receives_wait ? "receives" : "messages") << " wait; filling " << filling
              << ", in vain " << in_vain << ", matching " << matching;
        }
      }
    }
  }
}

// After many entries the queue is as it was at first.
TEST(MatchQueueTest, AQueueThatHasBeenEmptiedWorksAgain) {
  MatchQueue<int, int> queue;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5000; ++i) ASSERT_FALSE(queue.Arrive(i % 7, i, i).has_value());
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(queue.Post(kAny, i, 0), i);
    for (int i = 0; i < 5000; ++i) ASSERT_FALSE(queue.Post(i % 7, i, i).has_value());
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(queue.Arrive(i % 7, i, 0), i);
    ASSERT_EQ(queue.arrivals(), 0U);
    ASSERT_EQ(queue.receives(), 0U);
  }
}

TEST(MatchQueueTest, MatchesAsOneLookAfterTheOtherWould) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  const unsigned seeds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 300;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    MatchQueue<int, int> queue;
    PlainMatches plain;
    // Up to 64, so that look-ups of different keys meet.
    const unsigned sources = 1 + random() % (1U << random() % 7);
    const unsigned tags = 1 + random() % (1U << random() % 7);
    const unsigned lean = 1 + random() % 7;  // how many of eight steps are receives
    for (int step = 0; step < 400; ++step) {
      int source = static_cast<int>(random() % sources);
      int tag = static_cast<int>(random() % tags);
      if (random() % 8 < lean) {
        if (random() % 4 == 0) source = kAny;
        if (random() % 4 == 0) tag = kAny;
        ASSERT_EQ(queue.Post(source, tag, step), plain.Post(source, tag, step))
            << "seed " << seed << ", step " << step;
      } else {
        ASSERT_EQ(queue.Arrive(source, tag, step), plain.Arrive(source, tag, step))
            << "seed " << seed << ", step " << step;
      }
      ASSERT_EQ(queue.receives(), plain.receives()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(queue.arrivals(), plain.arrivals()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace railhead::transfers
