// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/match_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(MatchQueueTest, MatchesAsOneLookAfterTheOtherWould) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  const unsigned seeds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 300;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    MatchQueue<int, int> queue;
    PlainMatches plain;
    const unsigned sources = 1 + random() % 4;
    const unsigned tags = 1 + random() % 4;
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
