// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/pkey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace railhead::transport::verbs {
namespace {

using testing::ElementsAre;

std::vector<uint16_t> Usable(const std::vector<uint16_t>& table, uint16_t wanted = 0) {
  return WithoutIndices(UsablePkeys(table, wanted));
}

TEST(Pkey, FullMembershipsComeFirst) {
  EXPECT_THAT(Usable({0x7fff, 0x8002, 0x0003, 0x8001}),
              ElementsAre(0x8002, 0x8001, 0x7fff, 0x0003));
}

TEST(Pkey, EmptyEntriesAndRepetitionsAreLeftOut) {
  EXPECT_THAT(Usable({0, 0x8000, 0x0001, 0xffff, 0x8001, 0xffff}), ElementsAre(0xffff, 0x8001));
  EXPECT_EQ(UsablePkeys({0, 0x0001, 0x8001}, 0)[0].index, 2);
}

TEST(Pkey, OnlyTheWantedOneWhateverItsMembership) {
  EXPECT_THAT(Usable({0xffff, 0x0001}, 0x8001), ElementsAre(0x0001));
  EXPECT_THAT(Usable({0xffff, 0x8001}, 0x0001), ElementsAre(0x8001));
  EXPECT_TRUE(Usable({0xffff}, 0x8001).empty());
}

TEST(Pkey, NoMoreThanTravel) {
  std::vector<uint16_t> table;
  for (uint16_t i = 1; i <= 100; ++i) table.push_back(i);
  EXPECT_EQ(Usable(table).size(), kMostPkeys);
  EXPECT_THAT(Usable(table, 99), ElementsAre(99));
}

TEST(Pkey, TextForPeople) {
  EXPECT_EQ(PkeyText(0x8001), "0x8001");
  EXPECT_EQ(PkeyText(std::vector<uint16_t>{0x8001, 1}), "0x8001, 0x0001");
  EXPECT_EQ(PkeyText(std::vector<uint16_t>{}), "none");
}

TEST(Pkey, TwoLimitedMembersHaveNothingInCommon) {
  EXPECT_FALSE(CommonPkey(UsablePkeys({0x7fff}, 0), {0x7fff}).has_value());
  EXPECT_EQ(CommonPkey(UsablePkeys({0x7fff}, 0), {0xffff})->pkey, 0x7fff);
}

TEST(Pkey, TheDefaultPartitionWhereThatIsFirstOnBothSides) {
  EXPECT_EQ(CommonPkey(UsablePkeys({0xffff, 0x8001}, 0), {0xffff, 0x8001})->index, 0);
}

// Whatever the tables: both sides find the same partition, in which they may talk, whenever there
// is one.
TEST(Pkey, BothSidesAgree) {
  std::mt19937 random(5);
  int agreed = 0;
  for (int round = 0; round < 5000; ++round) {
    const auto table = [&random] {
      std::vector<uint16_t> entries(random() % 6);
      for (uint16_t& entry : entries) entry = static_cast<uint16_t>(random() % 5 | random() << 15);
      return entries;
    };
    const std::vector<uint16_t> tables[2] = {table(), table()};
    const std::vector<PkeyChoice> usable[2] = {UsablePkeys(tables[0], 0),
                                               UsablePkeys(tables[1], 0)};
    bool possible = false;
    for (const uint16_t a : tables[0]) {
      for (const uint16_t b : tables[1]) {
        possible = possible ||
                   ((a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0);
      }
    }
    const auto a = CommonPkey(usable[0], WithoutIndices(usable[1]));
    const auto b = CommonPkey(usable[1], WithoutIndices(usable[0]));
    ASSERT_EQ(a.has_value(), possible);
    ASSERT_EQ(b.has_value(), possible);
    if (!possible) continue;
    ++agreed;
    ASSERT_EQ(a->pkey & 0x7fff, b->pkey & 0x7fff);
    ASSERT_NE((a->pkey | b->pkey) & 0x8000, 0);
    ASSERT_EQ(tables[0][a->index], a->pkey);
    ASSERT_EQ(tables[1][b->index], b->pkey);
  }
  EXPECT_GT(agreed, 1000);
}

}  // namespace
}  // namespace railhead::transport::verbs
