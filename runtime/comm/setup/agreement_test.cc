// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::comm {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

// Ranks of a job over TCP, so many in each pod.
RankReport ReportOf(int rank, int per_pod) {
  RankReport report;
  report.name = absl::StrCat("rank ", rank, " (pod p", rank / per_pod, ")");
  report.place = absl::StrCat("p", rank / per_pod);
  report.cores = "\xff";
  report.rejoin_address = std::string(6, static_cast<char>('a' + rank % 26));
  return report;
}

std::vector<std::string> Statements(int world, int per_pod) {
  std::vector<std::string> statements;
  for (int rank = 0; rank < world; ++rank) {
    statements.push_back(Encode(Statement{Encode(ReportOf(rank, per_pod)),
                                          {absl::StrCat("acceptor of ", rank)},
                                          static_cast<uint64_t>(rank),
                                          {(rank + 1) % world, (rank + world - 1) % world}}));
  }
  return statements;
}

TEST(AgreementTest, AllKnowTheDecisionAndEachItsNeighbours) {
  constexpr int kWorld = 12;
  Coordinator coordinator(kKey);
  const auto answer = coordinator.Answer(Statements(kWorld, 4));
  ASSERT_TRUE(answer.ok()) << answer.status();
  const absl::StatusOr<Agreement> agreement = ParseAgreement(answer->for_all, kWorld);
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  EXPECT_EQ(agreement->decision.places,
            (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}));
  EXPECT_EQ(agreement->pods, 3);
  EXPECT_EQ(agreement->rejoin_addresses[11], std::string(6, 'a' + 11));
  EXPECT_EQ(agreement->key, kKey);
  for (int rank = 0; rank < kWorld; ++rank) {
    const auto particulars = ParseParticulars(answer->for_each[static_cast<size_t>(rank)], kWorld);
    ASSERT_TRUE(particulars.ok()) << particulars.status();
    const int next = (rank + 1) % kWorld;
    const int previous = (rank + kWorld - 1) % kWorld;
    const auto at = [](int other) {
      return Whereabouts{ReportOf(other, 4).name,
                         {absl::StrCat("acceptor of ", other)},
                         static_cast<uint64_t>(other)};
    };
    EXPECT_EQ(particulars->wanted,
              (std::map<int, Whereabouts>{{next, at(next)}, {previous, at(previous)}}));
    // Pairs of different pods, and they are mutual.
    EXPECT_NE(particulars->partner / 4, rank / 4);
    const auto theirs =
        ParseParticulars(answer->for_each[static_cast<size_t>(particulars->partner)], kWorld);
    EXPECT_EQ(theirs->partner, rank);
  }
}

TEST(AgreementTest, NothingIsDecidedAgainUntilAReportChanges) {
  Coordinator coordinator(kKey);
  ASSERT_TRUE(coordinator.Answer(Statements(4, 2)).ok());
  std::vector<std::string> unchanged(4, Encode(Statement{"", {"elsewhere"}, 2, {0}}));
  const auto again = coordinator.Answer(unchanged);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->for_all, "");
  EXPECT_EQ(ParseParticulars(again->for_each[3], 4)->wanted,
            (std::map<int, Whereabouts>{{0, {"rank 0 (pod p0)", {"elsewhere"}, 2}}}));

  RankReport changed = ReportOf(1, 2);
  changed.shm_trouble = "no room";
  unchanged[1] = Encode(Statement{Encode(changed), {}, 0, {}});
  const auto other = coordinator.Answer(unchanged);
  ASSERT_TRUE(other.ok());
  const auto agreement = ParseAgreement(other->for_all, 4);
  ASSERT_TRUE(agreement.ok());
  EXPECT_TRUE(agreement->decision.places.empty());
  EXPECT_THAT(agreement->decision.degraded_reason, HasSubstr("no room"));
}

TEST(AgreementTest, WhatCannotBeDecidedIsEverybodysError) {
  std::vector<std::string> statements = Statements(3, 1);
  RankReport strict = ReportOf(1, 1);
  strict.require_rdma = true;
  statements[1] = Encode(Statement{Encode(strict), {}, 0, {}});
  EXPECT_THAT(std::string(Coordinator(kKey).Answer(statements).status().message()),
              HasSubstr("RAILHEAD_REQUIRE_RDMA=1 on rank 1"));
  statements = Statements(3, 1);
  statements[2] = Encode(Statement{Encode(ReportOf(2, 1)), {}, 0, {7}});
  EXPECT_THAT(std::string(Coordinator(kKey).Answer(statements).status().message()),
              HasSubstr("rank 2 (pod p2) wants to know where rank 7 is"));
  statements[2] = Encode(Statement{"", {}, 0, {}});
  EXPECT_EQ(std::string(Coordinator(kKey).Answer(statements).status().message()),
            "rank 2 has sent no description of itself");
  statements[2] = "x";
  EXPECT_FALSE(Coordinator(kKey).Answer(statements).ok());
}

// Whoever shares memory with whom: what is told is what was decided.
TEST(AgreementTest, PlacesTravelWhole) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int world = 1 + static_cast<int>(random() % 60);
    const size_t places = 1 + random() % 8;
    Agreement agreement;
    std::vector<std::vector<int>> drawn(places);
    for (int rank = 0; rank < world; ++rank) {
      // In runs, in turns, and anyhow.
      const size_t place = trial % 3 == 0   ? static_cast<size_t>(rank) / 8 % places
                           : trial % 3 == 1 ? static_cast<size_t>(rank) % places
                                            : random() % places;
      drawn[place].push_back(rank);
      agreement.rejoin_addresses.emplace_back(random() % 2 == 0 ? 6 : 18, 'd');
    }
    std::erase_if(drawn, [](const auto& place) { return place.empty(); });
    agreement.decision.places = drawn;
    agreement.decision.rails = {0, 3};
    agreement.decision.degraded_reason = "less";
    agreement.usual = {{3, "", "", "400 Gb/sec", 4096}};
    const std::string bytes = Encode(agreement);
    const absl::StatusOr<Agreement> parsed = ParseAgreement(bytes, world);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, agreement);
    EXPECT_FALSE(ParseAgreement(bytes + "x", world).ok());
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(ParseAgreement(absl::string_view(bytes).substr(0, size), world).ok()) << size;
    }
  }
}

// The promise of the header: beside rejoin addresses, what a rank learns does not grow with the
// world while the number of places does not.
TEST(AgreementTest, ARankLearnsLittleOfALargeWorld) {
  size_t fixed = 0;
  for (const int world : {1000, 4000, 16000}) {
    Coordinator coordinator(kKey);
    const auto answer = coordinator.Answer(Statements(world, world / 10));
    ASSERT_TRUE(answer.ok());
    size_t most = 0;
    for (const std::string& each : answer->for_each) most = std::max(most, each.size());
    const size_t learned = answer->for_all.size() - static_cast<size_t>(world) * 7 + most;
    if (fixed == 0) fixed = learned + 16;
    EXPECT_LE(learned, fixed) << world;
  }
}

}  // namespace
}  // namespace railhead::comm
