// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/waiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace railhead::recorder {
namespace {

using collectives::Collective;
using ::testing::ElementsAre;

constexpr absl::Duration kRecent = absl::Seconds(60);

Seen In(Collective collective, uint64_t number, absl::Duration age, std::vector<int> awaited = {}) {
  Seen seen;
  seen.how = Seen::How::kAnswered;
  Doing& last = seen.position.last.emplace();
  last.collective = collective;
  last.number = number;
  last.age = age;
  last.awaited = std::move(awaited);
  seen.position.collectives = collective == Collective::kSendReceive ? 0 : number + 1;
  return seen;
}
Seen InBarrier(uint64_t number, absl::Duration age = absl::Seconds(61)) {
  return In(Collective::kBarrier, number, age);
}
Seen InTransfer(std::vector<int> awaited, absl::Duration age = absl::Seconds(61)) {
  return In(Collective::kSendReceive, 0, age, std::move(awaited));
}
Seen Done(uint64_t number) {
  Seen seen = InBarrier(number);
  seen.position.last->state = State::kDone;
  return seen;
}
Seen Nothing() {
  Seen seen;
  seen.how = Seen::How::kAnswered;
  return seen;
}

TEST(WaitingTest, WhereAllHaveCalledNobodyIsExcused) {
  EXPECT_THAT(WaitsForCallers({InBarrier(7), InBarrier(7), InBarrier(7)}, kRecent),
              ElementsAre(false, false, false));
}

TEST(WaitingTest, ARankThatHasNotCalledExcusesThoseThatHave) {
  EXPECT_THAT(WaitsForCallers({Done(6), InBarrier(7), InBarrier(7)}, kRecent),
              ElementsAre(false, true, true));
  EXPECT_THAT(WaitsForCallers({InBarrier(0), InBarrier(0), Nothing()}, kRecent),
              ElementsAre(true, true, false));
}

TEST(WaitingTest, WhoStandsStillInAnEarlierOneIsNotExcusedNorWhoWaitsForIt) {
  EXPECT_THAT(WaitsForCallers({InBarrier(6), InBarrier(7), InBarrier(6)}, kRecent),
              ElementsAre(false, false, false));
  // Rank 3 is done with the one in which they are, and idle.
  EXPECT_THAT(WaitsForCallers({InBarrier(6), InBarrier(7), InBarrier(6), Done(6)}, kRecent),
              ElementsAre(false, true, false, false));
}

TEST(WaitingTest, WhoHasOnlyJustCalledHasItsTime) {
  EXPECT_THAT(
      WaitsForCallers({InBarrier(7, absl::Seconds(1)), InBarrier(7), InBarrier(7)}, kRecent),
      ElementsAre(true, true, true));
}

TEST(WaitingTest, TransfersWaitForTheirPeersAlone) {
  // 0 and 1 stand still with each other, whatever 2 does not do; 3 waits for 2.
  EXPECT_THAT(
      WaitsForCallers({InTransfer({1}), InTransfer({0}), Nothing(), InTransfer({2})}, kRecent),
      ElementsAre(false, false, false, true));
}

TEST(WaitingTest, ThroughOthersAsWell) {
  // A row of ranks, each of which waits for the next one; the last has not called.
  EXPECT_THAT(
      WaitsForCallers({InTransfer({1}), InTransfer({2}), InTransfer({3}), Nothing()}, kRecent),
      ElementsAre(true, true, true, false));
  // Rank 2 has not come to the collective, since it waits for rank 3 itself.
  EXPECT_THAT(WaitsForCallers({InBarrier(0), InBarrier(0), InTransfer({3}), Nothing()}, kRecent),
              ElementsAre(true, true, true, false));
}

TEST(WaitingTest, ASilentRankIsWhereItWasUntilItsTimeIsOver) {
  for (const Seen::How how : {Seen::How::kSilent, Seen::How::kNotAsked}) {
    Seen silent;
    silent.how = how;
    silent.silence = absl::Seconds(59);
    // Nothing is known of it, so it may not have called.
    EXPECT_THAT(WaitsForCallers({InBarrier(7), InBarrier(7), silent}, kRecent),
                ElementsAre(true, true, false));
    silent.position = InBarrier(7).position;
    EXPECT_THAT(WaitsForCallers({InBarrier(7), InBarrier(7), silent}, kRecent),
                ElementsAre(false, false, false));
    silent.position = Done(6).position;
    EXPECT_THAT(WaitsForCallers({InBarrier(7), InBarrier(7), silent}, kRecent),
                ElementsAre(true, true, false));
    silent.silence = absl::Seconds(60);
    EXPECT_THAT(WaitsForCallers({Done(6), InBarrier(7), silent}, kRecent),
                ElementsAre(false, false, false));
  }
}

TEST(WaitingTest, ARankThatHasLeftIsNotWaitedForAndHidesNoOther) {
  Seen left;
  left.how = Seen::How::kLeft;
  EXPECT_THAT(WaitsForCallers({InTransfer({1}), Nothing(), left, InTransfer({2})}, kRecent),
              ElementsAre(true, false, false, false));
  EXPECT_THAT(WaitsForCallers({Done(6), InBarrier(7), left}, kRecent),
              ElementsAre(false, true, false));
  // Only the one that has left has not called.
  EXPECT_THAT(WaitsForCallers({InBarrier(7), InBarrier(7), left}, kRecent),
              ElementsAre(false, false, false));
}

TEST(WaitingTest, PeersThatDoNotExistAreNobody) {
  EXPECT_THAT(WaitsForCallers({InTransfer({-1, 7, 0}), Nothing()}, kRecent),
              ElementsAre(false, false));
}

TEST(WordTest, ComesBackAsItWas) {
  for (const size_t ranks : {0, 1, 8, 9, 65536}) {
    Word word;
    word.text = "rank 1 has not called";
    word.waits.resize(ranks);
    for (size_t rank = 0; rank < ranks; rank += 3) word.waits[rank] = true;
    word.still = ranks % 2 == 1;
    word.log = ranks == 8;
    if (ranks > 1) word.stuck = {{0, 1}, {7, static_cast<int>(ranks) - 1}};
    const std::string bytes = Encode(word);
    const absl::StatusOr<Word> parsed = ParseWord(bytes);
    ASSERT_TRUE(parsed.ok()) << ranks;
    EXPECT_EQ(parsed->text, word.text);
    EXPECT_EQ(parsed->waits, word.waits);
    EXPECT_EQ(parsed->still, word.still);
    EXPECT_EQ(parsed->log, word.log);
    EXPECT_EQ(parsed->stuck, word.stuck);
    for (size_t size = 0; size < std::min<size_t>(bytes.size(), 40); ++size) {
      EXPECT_FALSE(ParseWord(absl::string_view(bytes).substr(0, size)).ok()) << size;
    }
  }
  EXPECT_FALSE(ParseWord(std::string("\0\0\0\0\xff\xff\xff\xff", 8)).ok());
}

}  // namespace
}  // namespace railhead::recorder
