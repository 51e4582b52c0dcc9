// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/frame.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace railhead::bootstrap {
namespace {

TEST(FrameTest, FramesSurviveAnyCutting) {
  const std::string stream = EncodeFrame(FrameKind::kHello, "abc") +
                             EncodeFrame(FrameKind::kBye, "") +
                             EncodeFrame(FrameKind::kGather, std::string(1000, 'x'));
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    FrameReader reader(1000);
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size();) {
      const size_t size = std::min<size_t>(1 + random() % 40, stream.size() - at);
      reader.buffer()->append(stream, at, size);
      at += size;
      while (true) {
        const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
        ASSERT_TRUE(frame.ok()) << frame.status();
        if (!frame->has_value()) break;
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].kind, FrameKind::kHello);
    EXPECT_EQ(frames[0].payload, "abc");
    EXPECT_EQ(frames[1].kind, FrameKind::kBye);
    EXPECT_EQ(frames[2].payload, std::string(1000, 'x'));
  }
}

// The root of a large world gets many small ones at once. If splitting moved the rest for each,
// this would take hours.
TEST(FrameTest, ManyFramesInOneReadCostNoMoreThanTheirBytes) {
  constexpr size_t kFrames = 4'000'000;
  const std::string frame = EncodeFrame(FrameKind::kLocate, "from and to");
  FrameReader reader(1000);
  for (size_t i = 0; i < kFrames; ++i) reader.buffer()->append(frame);
  size_t frames = 0;
  for (;; ++frames) {
    const absl::StatusOr<std::optional<Frame>> next = reader.Next();
    ASSERT_TRUE(next.ok());
    if (!next->has_value()) break;
    ASSERT_EQ((*next)->payload, "from and to");
  }
  EXPECT_EQ(frames, kFrames);
  EXPECT_TRUE(reader.buffer()->empty());
}

TEST(FrameTest, StrangersAreKnownByTheirFirstByte) {
  FrameReader reader(1000);
  reader.buffer()->append("G");
  EXPECT_FALSE(reader.Next().ok());
}

TEST(FrameTest, LongFramesAreRefusedBeforeTheyArrive) {
  const std::string frame = EncodeFrame(FrameKind::kGather, std::string(11, 'x'));
  FrameReader reader(10);
  reader.buffer()->append(frame.substr(0, 12));
  EXPECT_FALSE(reader.Next().ok());
}

TEST(FrameTest, UnknownKindsAreRefused) {
  std::string frame = EncodeFrame(FrameKind::kHello, "");
  for (const char kind : {'\0', static_cast<char>(static_cast<int>(kLastFrameKind) + 1), '\xff'}) {
    frame[4] = kind;
    FrameReader reader(10);
    reader.buffer()->append(frame);
    EXPECT_FALSE(reader.Next().ok()) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace railhead::bootstrap
