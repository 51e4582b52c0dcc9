// SPDX-License-Identifier: Apache-2.0
//
// The small parts of which rails are made: sets of ranges, queues of slots and of frames that
// nobody expects yet, and the size of chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/slot_queue.h"
#include "runtime/rails/chunk.h"
#include "runtime/rails/peers_for_test.h"
#include "runtime/rails/range_set.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/transport/link.h"

namespace railhead::rails {
namespace {

TEST(RangeSetTest, AgreesWithABitmap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    RangeSet set;
    std::vector<bool> bitmap(60);
    for (int step = 0; step < 60; ++step) {
      const size_t begin = random() % 60;
      const size_t end = std::min<size_t>(60, begin + random() % 9);
      const bool free = std::none_of(bitmap.begin() + static_cast<ptrdiff_t>(begin),
                                     bitmap.begin() + static_cast<ptrdiff_t>(end),
                                     [](bool taken) { return taken; });
      ASSERT_EQ(set.Add(begin, end), free) << begin << " to " << end;
      if (free)
        std::fill(bitmap.begin() + static_cast<ptrdiff_t>(begin),
                  bitmap.begin() + static_cast<ptrdiff_t>(end), true);
      ASSERT_EQ(set.total(), static_cast<uint64_t>(std::count(bitmap.begin(), bitmap.end(), true)));
    }
    set.Clear();
    EXPECT_EQ(set.total(), 0U);
    EXPECT_TRUE(set.Add(0, 60));
  }
}

TEST(RangeSetTest, BackwardRangesAreRefused) {
  RangeSet set;
  EXPECT_FALSE(set.Add(5, 4));
  EXPECT_EQ(set.total(), 0U);
}

TEST(SlotQueueTest, KeepsNumbersAndOrderWhileItGrows) {
  SlotQueue<uint64_t> queue;
  std::mt19937 random(2);
  uint64_t pushed = 0;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0 || queue.empty() || step < 200) {
      const uint64_t number = queue.Push();
      ASSERT_EQ(number, pushed);
      queue[number] = pushed++;
    } else {
      queue.Pop();
    }
    for (uint64_t n = queue.begin(); n < queue.end(); ++n) ASSERT_EQ(queue[n], n);
  }
}

TEST(ChunkTest, ChunksFitTheRailsAndGiveEachSeveral) {
  for (const size_t payload : {size_t{4096}, size_t{65536}, size_t{262144}, size_t{1} << 20}) {
    for (const size_t rails : {1, 2, 3, 8}) {
      for (size_t size = 1; size <= size_t{64} << 20; size = size * 3 / 2 + 1) {
        const size_t chunk = ChunkSize(size, rails, payload);
        ASSERT_GE(chunk, 1U);
        ASSERT_LE(chunk, payload);
        if (chunk < size) {
          ASSERT_EQ(chunk % 8, 0U) << "chunks must not cut through values";
        }
        if (size <= 16384 && payload >= 16384) {
          ASSERT_EQ(chunk, size);
        }
        if (rails == 1) {
          ASSERT_EQ(chunk, std::min(size, payload));
        } else if (size >= rails * (size_t{1} << 18)) {
          ASSERT_GE((size + chunk - 1) / chunk, rails * 4 - rails);
        }
      }
    }
  }
}

TEST(UnexpectedQueueTest, KeepsWhatFitsOnceAndGivesItBackInOrder) {
  UnexpectedQueue queue;
  const std::string text(1000, 't');
  std::string out;
  const auto append = [&](const transport::FrameHeader&, absl::Span<const std::byte> payload) {
    out.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  };
  for (int round = 0; round < 3; ++round) {
    const auto next = static_cast<uint64_t>(4 * round);
    EXPECT_TRUE(queue.Put(Frame(next + 1, 0, 1004), Bytes(text)));
    EXPECT_TRUE(queue.Put(Frame(next + 2, 0, 3), Bytes(std::string("two"))));
    EXPECT_TRUE(queue.Put(Frame(next + 1, 1000, 1004), Bytes(std::string("more"))));
    const size_t used = queue.used();
    EXPECT_TRUE(queue.Put(Frame(next + 1, 0, 1004), Bytes(text))) << "it is there already";
    EXPECT_EQ(queue.used(), used);
    EXPECT_FALSE(queue.Put(Frame(next + 3, 0, kRoom), Bytes(std::string(kRoom - used, 'x'))));
    queue.TakeNext(append);
    EXPECT_EQ(out, "");
    queue.TakeNext(append);
    EXPECT_EQ(out, text + "more");
    queue.TakeNext(append);
    EXPECT_EQ(std::exchange(out, ""), text + "moretwo");
    EXPECT_EQ(queue.used(), 0U);
    queue.TakeNext(append);
  }
  EXPECT_FALSE(queue.Put(Frame(11, 0, 1), Bytes(std::string("x")))) << "posted long ago";
  EXPECT_FALSE(queue.Put(Frame(13 + kMaxTransfersAhead, 0, 1), Bytes(std::string("x"))));
}

}  // namespace
}  // namespace railhead::rails
