// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/tuner/costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "plugins/nccl/abi/tuner.h"

namespace railhead::nccl {
namespace {

constexpr int kAlgorithms = 7;
constexpr size_t kEntries = size_t{kAlgorithms} * abi::kProtocols;
using CostTable = std::array<float, kEntries>;

float& At(CostTable& table, int algorithm, int protocol) {
  return table[static_cast<size_t>(algorithm) * abi::kProtocols + static_cast<size_t>(protocol)];
}

CostTable Excluded() {
  CostTable table;
  table.fill(-1);
  return table;
}

// Returns the entry that NCCL takes: the first of the cheapest.
size_t ChoiceOf(const CostTable& table) {
  size_t best = kEntries;
  for (size_t i = 0; i < kEntries; ++i) {
    if (table[i] >= 0 && (best == kEntries || table[i] < table[best])) best = i;
  }
  return best;
}

// Counts what the nodes of a ring send to each other, step by step.
double BytesOfRing(const CommunicatorSize& size, size_t steps, double part) {
  std::vector<double> sent(size.nodes);
  const size_t per_node = size.ranks / size.nodes;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t rank = 0; rank < size.ranks; ++rank) {
      const size_t next = (rank + 1) % size.ranks;
      if (rank / per_node != next / per_node) sent[rank / per_node] += part;
    }
  }
  return *std::max_element(sent.begin(), sent.end());
}

TEST(NetworkBytesTest, RingsAreCounted) {
  for (const size_t nodes : {2, 3, 5, 16}) {
    for (const size_t per_node : {1, 2, 3, 8}) {
      const CommunicatorSize size{nodes * per_node, nodes};
      const double bytes = 840'000;
      const double part = bytes / static_cast<double>(size.ranks);
      const auto counted = [&](int collective) {
        return NetworkBytes(size, {collective, 840'000}, abi::kRing);
      };
      EXPECT_NEAR(counted(abi::kAllReduce), BytesOfRing(size, 2 * (size.ranks - 1), part), 1);
      EXPECT_NEAR(counted(abi::kAllGather), BytesOfRing(size, size.ranks - 1, part), 1);
      EXPECT_NEAR(counted(abi::kReduceScatter), BytesOfRing(size, size.ranks - 1, part), 1);
      EXPECT_EQ(counted(abi::kBroadcast), bytes);
      EXPECT_EQ(counted(abi::kReduce), bytes);
    }
  }
}

TEST(NetworkBytesTest, TreesSendHalfAsMuchBetweenTwoNodes) {
  EXPECT_EQ(NetworkBytes({16, 2}, {abi::kAllReduce, 1000}, abi::kTree), 1000);
  EXPECT_EQ(NetworkBytes({16, 4}, {abi::kAllReduce, 1000}, abi::kTree), 2000);
  EXPECT_EQ(NetworkBytes({16, 2}, {abi::kAllReduce, 1000}, abi::kNvlsTree), 1000);
  EXPECT_EQ(NetworkBytes({3, 3}, {abi::kAllReduce, 1000}, abi::kNvlsTree), 2000);
}

TEST(NetworkBytesTest, OneNodeHasNoNetwork) {
  for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
    EXPECT_EQ(NetworkBytes({8, 1}, {abi::kAllReduce, 1000}, algorithm), 0);
    EXPECT_EQ(NetworkBytes({1, 1}, {abi::kAllReduce, 1000}, algorithm), 0);
  }
}

TEST(CorrectCostsTest, AddsTheTimeOfTheSlowerNetwork) {
  CostTable table = Excluded();
  At(table, abi::kRing, abi::kSimple) = 100;
  At(table, abi::kRing, abi::kLl) = 50;
  At(table, abi::kRing, abi::kLl128) = 75;
  At(table, abi::kTree, abi::kSimple) = 60;
  // 1 MB at 100 Gbit/s takes 80 us, at 400 Gbit/s 20 us.
  CorrectCosts({4, 4}, {abi::kAllReduce, 1'000'000}, {100, 400}, absl::MakeSpan(table), 3);
  EXPECT_NEAR(At(table, abi::kRing, abi::kSimple), 100 + 1.5 * 60, 0.01);
  EXPECT_NEAR(At(table, abi::kRing, abi::kLl), 50 + 1.5 * 60 * 2, 0.01);
  EXPECT_NEAR(At(table, abi::kRing, abi::kLl128), 75 + 1.5 * 60 * 128 / 120, 0.01);
  EXPECT_NEAR(At(table, abi::kTree, abi::kSimple), 60 + 2 * 60, 0.01);
  EXPECT_EQ(std::count(table.begin(), table.end(), -1.0F), static_cast<long>(kEntries) - 4);
}

// A network of half the speed moves the choice from the protocol with the least latency to the one
// with the fewest bytes, and from the tree to the ring.
TEST(CorrectCostsTest, MovesTheChoice) {
  CostTable table = Excluded();
  At(table, abi::kTree, abi::kLl) = 40;
  At(table, abi::kTree, abi::kSimple) = 55;
  At(table, abi::kRing, abi::kSimple) = 58;
  CostTable same = table;
  CorrectCosts({3, 3}, {abi::kAllReduce, 100'000}, {400, 400}, absl::MakeSpan(same), 3);
  EXPECT_EQ(same, table);
  CorrectCosts({3, 3}, {abi::kAllReduce, 100'000}, {20, 400}, absl::MakeSpan(table), 3);
  EXPECT_EQ(ChoiceOf(table), size_t{abi::kRing} * 3 + abi::kSimple);
}

TEST(CorrectCostsTest, RandomTables) {
  std::mt19937 draw(11);
  const auto number = [&draw](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(draw);
  };
  int moved = 0;
  for (int round = 0; round < 20'000; ++round) {
    const size_t nodes = 1 + draw() % 5;
    const CommunicatorSize size{nodes * (1 + draw() % 9), nodes};
    const CollectiveCall call{static_cast<int>(draw() % 7),
                              static_cast<size_t>(std::pow(2, number(0, 36)))};
    const double told = number(1, 3200);
    const NetworkRates rates{draw() % 4 == 0 ? told : told * number(0.001, 1), told};
    CostTable before;
    for (float& cost : before) {
      cost = draw() % 3 == 0 ? -1 : static_cast<float>(std::pow(10, number(-1, 8)));
    }
    if (draw() % 8 == 0) before[draw() % kEntries] = 0;
    CostTable after = before;
    CorrectCosts(size, call, rates, absl::MakeSpan(after), 3);
    CostTable again = before;
    CorrectCosts(size, call, rates, absl::MakeSpan(again), 3);
    ASSERT_EQ(after, again) << "ranks would choose differently";
    for (size_t i = 0; i < kEntries; ++i) {
      if (before[i] < 0 || nodes == 1 || rates.real == rates.told) {
        ASSERT_EQ(after[i], before[i]);
      } else {
        ASSERT_GE(after[i], before[i]);
        ASSERT_TRUE(std::isfinite(after[i]));
      }
    }
    ASSERT_EQ(ChoiceOf(after) == kEntries, ChoiceOf(before) == kEntries);
    moved += ChoiceOf(after) != ChoiceOf(before) ? 1 : 0;
  }
  EXPECT_GT(moved, 1000);
}

TEST(CorrectCostsTest, ATableOfAnotherShapeStays) {
  std::vector<float> costs(28, 5.0F);
  CorrectCosts({4, 4}, {abi::kAllReduce, 1 << 20}, {1, 2}, absl::MakeSpan(costs), 4);
  EXPECT_EQ(costs, std::vector<float>(28, 5.0F));
  std::vector<float> more(30, 5.0F);  // three algorithms that are not known
  CorrectCosts({4, 4}, {abi::kAllReduce, 1 << 20}, {1, 2}, absl::MakeSpan(more), 3);
  EXPECT_GT(*std::min_element(more.begin(), more.end()), 5.0F);
}

}  // namespace
}  // namespace railhead::nccl
