// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/session.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/frame.h"

namespace railhead::bootstrap {
namespace {

constexpr size_t kLimit = size_t{1} << 20;

Frame Report(uint64_t arrived) {
  WireWriter writer;
  writer.U64(arrived);
  return {FrameKind::kReceived, writer.Take()};
}

// One side, the bytes on their way to it, and what its user has sent and got.
struct Side {
  Session session;
  std::string on_the_way;
  FrameReader reader{kLimit};
  std::vector<std::string> sent;
  std::vector<std::string> got;
};

// Two sides, with sockets that carry some bytes, and are lost at any of them.
class Pair {
 public:
  explicit Pair(unsigned seed) : random_(seed) {
    for (const int from : {0, 1}) Put(from, FrameKind::kMeet, "meet");
  }

  int Random(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  void Put(int from, FrameKind kind, const std::string& text) {
    const absl::string_view bytes = sides_[from].session.Add(kind, text);
    sides_[from].sent.push_back(text);
    if (connected_) sides_[1 - from].on_the_way += std::string(bytes);
  }
  void Send(int from) {
    // Some are so large that their bytes count, not their number.
    const size_t size = Random(50) == 0 ? static_cast<size_t>(Random(100'000)) : 10;
    std::string text = absl::StrCat(sides_[from].sent.size(), " ");
    text.resize(text.size() + size, 'x');
    Put(from, FrameKind::kReport, text);
  }
  // Delivers some of the bytes.
  void Deliver(int to, size_t most) {
    if (!connected_) return;
    Side& side = sides_[to];
    const size_t size = std::min(most, side.on_the_way.size());
    side.reader.buffer()->append(side.on_the_way, 0, size);
    side.on_the_way.erase(0, size);
    while (true) {
      const absl::StatusOr<std::optional<Frame>> frame = side.reader.Next();
      ASSERT_TRUE(frame.ok()) << frame.status();
      if (!frame->has_value()) break;
      const absl::StatusOr<bool> for_user = side.session.Receive(**frame);
      ASSERT_TRUE(for_user.ok()) << for_user.status();
      if (*for_user) side.got.push_back((*frame)->payload);
    }
    sides_[1 - to].on_the_way += side.session.TakeReport();
  }
  void Lose() {
    connected_ = false;
    for (Side& side : sides_) side.on_the_way.clear();
  }
  void Reconnect() {
    if (connected_) return;
    connected_ = true;
    for (const int from : {0, 1}) {
      sides_[from].reader = FrameReader(kLimit);
      const absl::StatusOr<std::string> missed =
          sides_[from].session.Resume(sides_[1 - from].session.received());
      ASSERT_TRUE(missed.ok()) << missed.status();
      sides_[1 - from].on_the_way = *missed;
    }
  }
  Side& side(int index) { return sides_[index]; }

 private:
  Side sides_[2];
  bool connected_ = true;
  std::mt19937 random_;
};

TEST(SessionTest, EachFrameArrivesOnceAndInOrder) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Pair pair(seed);
    const int losses = static_cast<int>(seed % 3);  // in a hundred steps
    for (int step = 0; step < 2'000; ++step) {
      const int what = pair.Random(100);
      if (what < losses) {
        pair.Lose();
      } else if (what < 10) {
        pair.Reconnect();
      } else if (what < 60) {
        pair.Send(pair.Random(2));
      } else {
        pair.Deliver(pair.Random(2), static_cast<size_t>(pair.Random(4'000)));
      }
      if (HasFatalFailure()) return;
    }
    pair.Reconnect();
    for (const int to : {0, 1, 0, 1}) pair.Deliver(to, SIZE_MAX);
    for (const int to : {0, 1}) {
      EXPECT_EQ(pair.side(to).got, pair.side(1 - to).sent);
      EXPECT_LT(pair.side(to).session.kept(), Session::kReportFrames);
    }
  }
}

// The peer had sent these while this side was still connecting.
TEST(SessionTest, WhatCameBeforeItBeganCounts) {
  Session session(5);
  EXPECT_EQ(session.received(), 5u);
  EXPECT_TRUE(*session.Receive({FrameKind::kReport, ""}));
  EXPECT_EQ(session.received(), 6u);
}

TEST(SessionTest, WhatCameBeforeTheMeetingDoesNot) {
  Session session;
  EXPECT_TRUE(*session.Receive({FrameKind::kBye, ""}));
  EXPECT_EQ(session.received(), 0u);
  EXPECT_TRUE(*session.Receive({FrameKind::kMeet, ""}));
  EXPECT_TRUE(*session.Receive({FrameKind::kBye, ""}));
  EXPECT_EQ(session.received(), 2u);
}

TEST(SessionTest, APeerCannotHaveWhatWasNotSentOrHasBeenForgotten) {
  Session session;
  for (int i = 0; i < 10; ++i) session.Add(FrameKind::kReport, "");
  EXPECT_FALSE(session.Receive(Report(11)).ok());
  EXPECT_FALSE(session.Resume(11).ok());
  EXPECT_FALSE(session.Receive({FrameKind::kReceived, "short"}).ok());
  EXPECT_FALSE(*session.Receive(Report(4)));
  EXPECT_EQ(session.kept(), 6u);
  EXPECT_FALSE(session.Receive(Report(3)).ok());
  EXPECT_FALSE(session.Resume(3).ok());
  EXPECT_TRUE(session.Resume(4).ok());
}

}  // namespace
}  // namespace railhead::bootstrap
