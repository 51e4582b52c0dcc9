// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace railhead::comm {
namespace {

using config::Fallback;
using config::TransportChoice;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A rank that was given working rails of these numbers.
RankReport Rank(int rank, const std::vector<int>& rails) {
  RankReport report;
  report.name = absl::StrCat("rank ", rank, " (pod job-", rank, ")");
  report.has_rails_file = !rails.empty();
  for (const int rail : rails) report.rails.push_back({rail, absl::StrCat("rxe", rail), ""});
  return report;
}

TEST(DecisionTest, AllRailsWorkEverywhere) {
  const absl::StatusOr<Decision> decision = Decide({Rank(0, {0, 1}), Rank(1, {1, 0})});
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->verbs);
  EXPECT_THAT(decision->rails, ElementsAre(0, 1));
  EXPECT_EQ(decision->degraded_reason, "");
}

// A rank without RDMA in a pod.
RankReport Local(int rank, const std::string& place, const Cores& cores = "\xff") {
  RankReport report = Rank(rank, {});
  report.place = place;
  report.cores = cores;
  return report;
}

TEST(DecisionTest, RanksInOnePlaceShareMemory) {
  const absl::StatusOr<Decision> decision = Decide({Local(0, "a"), Local(1, "a"), Local(2, "a")});
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->shm);
  EXPECT_FALSE(decision->crowded);
  EXPECT_EQ(decision->degraded_reason, "");
  EXPECT_FALSE(Decide({Local(0, "a"), Local(1, "a", "\1"), Local(2, "a", "\2")})->crowded);
  EXPECT_TRUE(Decide({Local(0, "a"), Local(1, "a", "\2"), Local(2, "a", "\2")})->crowded);
  EXPECT_FALSE(Decide({Local(0, "a"), Local(1, "b")})->shm);
  EXPECT_FALSE(Decide({Local(0, ""), Local(1, "")})->shm);
  EXPECT_FALSE(Decide({Local(0, "a")})->shm) << "alone";
}

// A control group may give its ranks less time than their cores have.
TEST(DecisionTest, RanksAreCrowdedWhereTheirTimeIsLimited) {
  const auto crowded = [](std::vector<CpuLimit> limits) {
    std::vector<RankReport> reports;
    for (const CpuLimit& limit : limits) {
      reports.push_back(Local(static_cast<int>(reports.size()), "a"));
      reports.back().cpu = limit;
    }
    return Decide(reports)->crowded;
  };
  EXPECT_FALSE(crowded({{7, 3000}, {7, 3000}, {7, 3000}}));
  EXPECT_TRUE(crowded({{7, 2999}, {7, 2999}, {7, 2999}}));
  EXPECT_FALSE(crowded({{7, 1000}, {8, 1000}, {9, 1000}})) << "containers of their own";
  EXPECT_TRUE(crowded({{7, 1000}, {8, 500}, {9, 1000}}));
  EXPECT_FALSE(crowded({{0, 0}, {0, 0}, {7, 1500}}));
}

TEST(DecisionTest, WhatProgramsHaveSetMustBeTheSame) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "a"), Local(2, "b")};
  for (RankReport& report : reports) report.configured = {{"commName", "tp"}};
  EXPECT_TRUE(Decide(reports).ok());
  reports[2].configured["commName"] = "dp";
  EXPECT_EQ(Decide(reports).status(),
            absl::InvalidArgumentError(
                "rhConfig_t.commName: rank 0 (pod job-0) has set it to 'tp', and "
                "rank 2 (pod job-2) has set it to 'dp'; set the same value on all ranks"));
  reports[2].configured["commName"] = "tp";
  reports[1].configured["timeoutSeconds"] = "5";
  EXPECT_EQ(Decide(reports).status(),
            absl::InvalidArgumentError(
                "rhConfig_t.timeoutSeconds: rank 0 (pod job-0) has not set it, "
                "and rank 1 (pod job-1) has set it to '5'; set the same value on all ranks"));
}

TEST(DecisionTest, MessagesNameWhatHasChosenTheTransport) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "b")};
  for (RankReport& report : reports) {
    report.choice = config::TransportChoice::kShm;
    report.configured = {{"transport", "shm"}};
  }
  EXPECT_THAT(
      std::string(Decide(reports).status().message()),
      HasSubstr("shared memory was chosen (rhConfig_t.transport=shm on rank 0 (pod job-0))"));
}

using Places = std::vector<std::vector<int>>;

TEST(DecisionTest, RanksOfOnePlaceAmongSeveralShareMemoryBesides) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "b", "\1"), Local(2, "a"),
                                     Local(3, "b", "\1")};
  absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->shm);
  EXPECT_EQ(decision->places, (Places{{0, 2}, {1, 3}}));
  EXPECT_TRUE(decision->crowded) << "ranks 1 and 3 have one core";
  EXPECT_EQ(Decide({Local(0, "a"), Local(1, "a")})->places, (Places{{0, 1}}));

  for (RankReport& report : reports) {
    report.rails = {{0, "rxe0", ""}};
    report.require_rdma = true;
  }
  decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->verbs);
  EXPECT_EQ(decision->places.size(), 2U) << "rails are what is required between places";

  reports[3].shm_trouble = "out of memory";
  EXPECT_TRUE(Decide(reports)->places.empty());
  reports[3].shm_trouble = "";
  reports[3].choice = TransportChoice::kVerbs;
  EXPECT_TRUE(Decide(reports)->places.empty()) << "nothing but that was chosen";
}

TEST(DecisionTest, PlacesMayHaveAnyNumbersOfRanks) {
  EXPECT_TRUE(Decide({Local(0, "a"), Local(1, "b")})->places.empty()) << "nobody to share it with";
  EXPECT_EQ(Decide({Local(0, "a"), Local(1, "a"), Local(2, "b")})->places, (Places{{0, 1}, {2}}));
  EXPECT_EQ(Decide({Local(0, ""), Local(1, ""), Local(2, "a"), Local(3, "a")})->places,
            (Places{{0}, {1}, {2, 3}}));
  EXPECT_EQ(
      Decide({Local(0, "a"), Local(1, "b"), Local(2, "a"), Local(3, "a"), Local(4, "b")})->places,
      (Places{{0, 2, 3}, {1, 4}}));
}

TEST(DecisionTest, PodsWithoutTheirMemorySayWhy) {
  const auto reason = [](const std::vector<RankReport>& reports) {
    return Decide(reports)->flat_reason;
  };
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "a"), Local(2, "b"), Local(3, "b")};
  EXPECT_EQ(reason(reports), "");
  EXPECT_EQ(reason({Local(0, "a"), Local(1, "b")}), "") << "there is no memory to share";
  reports[2].choice = TransportChoice::kTcp;
  EXPECT_THAT(reason(reports),
              AllOf(HasSubstr("rank 2"), HasSubstr("RAILHEAD_TRANSPORT=tcp is set")));
  EXPECT_EQ(Decide(reports)->places, Places());
  reports[3].place = reports[2].place = "a";
  EXPECT_THAT(reason(reports), HasSubstr("rank 2")) << "in a single pod as well";
  reports[2].choice = TransportChoice::kAuto;
  EXPECT_EQ(reason(reports), "") << "all share it";
}

TEST(DecisionTest, PlacesAreNumberedAndWhoIsNowhereIsAlone) {
  EXPECT_EQ(PlaceNumbers({{Local(0, "a"), Local(1, "b"), Local(2, "a"), Local(3, ""), Local(4, ""),
                           Local(5, "c"), Local(6, "b")}}),
            (std::vector<int>{0, 1, 0, 2, 3, 4, 1}));
}

// In large worlds others connect when they first have something for each other.
TEST(DecisionTest, PlacesOfAnySizeShareMemoryInLargeWorlds) {
  const auto places = [](int count, int local_ranks) {
    std::vector<RankReport> reports;
    for (int rank = 0; rank < count * local_ranks; ++rank) {
      reports.push_back(Local(rank, absl::StrCat("place ", rank / local_ranks)));
    }
    return Decide(reports)->places.size();
  };
  EXPECT_EQ(places(32, 2), 32U);
  EXPECT_EQ(places(21, 3), 21U);
  EXPECT_EQ(places(64, 8), 64U);
  EXPECT_EQ(places(100, 4), 100U);
  EXPECT_EQ(places(50, 3), 50U);
  EXPECT_EQ(places(13, 5), 13U);
}

TEST(DecisionTest, ARankWithOtherTcpRailsThanMostIsNamed) {
  std::vector<RankReport> reports = {Rank(0, {}), Rank(1, {}), Rank(2, {})};
  reports[1].tcp.resize(4);
  reports[2].tcp.resize(4);
  EXPECT_THAT(std::string(Decide(reports).status().message()),
              AllOf(HasSubstr("rank 0 (pod job-0) has 1 TCP rail, but the others have 4"),
                    HasSubstr("RAILHEAD_SOCKET_IFNAME"), Not(HasSubstr("rank 1"))));
  reports[0].tcp.resize(4);
  EXPECT_TRUE(Decide(reports).ok());
  // Over RDMA nobody asks.
  reports = {Rank(0, {0}), Rank(1, {0})};
  reports[0].tcp.resize(2);
  EXPECT_TRUE(Decide(reports).ok());
  EXPECT_EQ(ParseReport(Encode(reports[0]))->tcp.size(), 2U);
}

std::vector<TcpReport> Interfaces(int rails) {
  std::vector<TcpReport> tcp;
  for (int rail = 0; rail < rails; ++rail) tcp.push_back({absl::StrCat("r", rail), ""});
  return tcp;
}

// Whatever is down: a job over TCP starts if every pair has a rail that both can open, and
// otherwise the error names a pair that has none.
TEST(DecisionTest, TcpNeedsOneRailForEveryPair) {
  std::mt19937 random(17);
  int failed = 0;
  for (int round = 0; round < 2000; ++round) {
    const int world = 1 + static_cast<int>(random() % 7);
    const int rails = 1 + static_cast<int>(random() % 4);
    std::vector<RankReport> reports;
    for (int rank = 0; rank < world; ++rank) {
      reports.push_back(Rank(rank, {}));
      reports.back().tcp = Interfaces(rails);
      for (TcpReport& rail : reports.back().tcp) {
        if (random() % 4 == 0) rail.trouble = absl::StrCat(rail.interface, " is down");
      }
    }
    std::set<std::string> without;
    for (int a = 0; a < world; ++a) {
      for (int b = 0; b < world; ++b) {
        bool common = a == b;
        for (size_t rail = 0; rail < static_cast<size_t>(rails); ++rail) {
          common = common || (reports[static_cast<size_t>(a)].tcp[rail].trouble.empty() &&
                              reports[static_cast<size_t>(b)].tcp[rail].trouble.empty());
        }
        if (common) continue;
        without.insert(absl::StrCat("rank ", a, " (pod job-", a, ") and rank ", b, " (pod job-", b,
                                    ") have no TCP rail in common"));
      }
    }
    const absl::Status status = Decide(reports).status();
    EXPECT_EQ(status.ok(), without.empty()) << status;
    if (status.ok()) continue;
    ++failed;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    bool named = false;
    for (const std::string& pair : without) {
      named = named || absl::StrContains(status.message(), pair);
    }
    EXPECT_TRUE(named) << status;
  }
  EXPECT_GT(failed, 200);
}

TEST(DecisionTest, APairWithoutATcpRailIsNamedWithBothStates) {
  std::vector<RankReport> reports = {Rank(0, {}), Rank(1, {}), Rank(2, {})};
  for (RankReport& report : reports) report.tcp = Interfaces(2);
  reports[1].tcp[0].trouble = "interface 'r0' is down";
  reports[2].tcp[1].trouble = "interface 'r1' has no IP address";
  EXPECT_EQ(std::string(Decide(reports).status().message()),
            "rank 1 (pod job-1) and rank 2 (pod job-2) have no TCP rail in common (rank 1 (pod "
            "job-1): rail 0 (r0, tcp) cannot be opened: interface 'r0' is down, rail 1 (r1, tcp) "
            "can be opened; rank 2 (pod job-2): rail 0 (r0, tcp) can be opened, rail 1 (r1, tcp) "
            "cannot be opened: interface 'r1' has no IP address): bring the interfaces of one rail "
            "up on both");
}

// One that exists elsewhere may come yet; a name that nobody has is a wrong setting, whatever the
// ranks would use.
TEST(DecisionTest, AnInterfaceThatExistsNowhereIsAnError) {
  for (const std::vector<int>& rdma : {std::vector<int>{}, {0}}) {
    std::vector<RankReport> reports = {Rank(0, rdma), Rank(1, rdma), Rank(2, rdma)};
    for (RankReport& report : reports) report.tcp = Interfaces(2);
    reports[1].tcp[1] = {"r1", "no interface 'r1'", true};
    EXPECT_TRUE(Decide(reports).ok()) << Decide(reports).status();
    reports[0].tcp[1] = reports[2].tcp[1] = reports[1].tcp[1];
    EXPECT_EQ(Decide(reports).status(),
              absl::NotFoundError("rank 0 (pod job-0): RAILHEAD_SOCKET_IFNAME: no interface 'r1'"));
    reports[2].tcp[1] = {"other", "", false};
    reports[1].configured["socketIfname"] = "r0,r1";
    reports[0].configured = reports[2].configured = reports[1].configured;
    EXPECT_THAT(std::string(Decide(reports).status().message()),
                HasSubstr("rank 0 (pod job-0): rhConfig_t.socketIfname: no interface 'r1'"));
  }
}

TEST(DecisionTest, SharedMemoryGivesWayToWhatSomebodyWants) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "a")};
  for (const TransportChoice choice : {TransportChoice::kTcp, TransportChoice::kVerbs}) {
    reports[1].choice = choice;
    EXPECT_FALSE(Decide(reports)->shm);
  }
  reports[1] = Rank(1, {0});
  reports[1].place = "a";
  reports[1].require_rdma = true;
  EXPECT_FALSE(Decide(reports).ok()) << "rank 0 has no rail";
  reports[0].rails = reports[1].rails;
  EXPECT_TRUE(Decide(reports)->verbs);
}

TEST(DecisionTest, SharedMemoryThatWasChosenAndFailsIsAnError) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "b")};
  reports[0].choice = TransportChoice::kShm;
  EXPECT_THAT(std::string(Decide(reports).status().message()),
              HasSubstr("rank 1 (pod job-1) and rank 0 (pod job-0) are not in one pod"));
  reports[1].place = "a";
  reports[1].shm_trouble = "out of memory";
  EXPECT_THAT(std::string(Decide(reports).status().message()),
              HasSubstr("rank 1 (pod job-1): out of memory"));
  reports[0].choice = TransportChoice::kAuto;
  const absl::StatusOr<Decision> without = Decide(reports);
  ASSERT_TRUE(without.ok()) << "then without it";
  EXPECT_EQ(without->degraded_reason, "no shared memory: rank 1 (pod job-1): out of memory");
}

TEST(DecisionTest, ARailThatIsDownOnOneRankStaysAndIsNamed) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {0, 1})};
  reports[1].rails[1].trouble = "port 1 is DOWN";
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->verbs);
  EXPECT_THAT(decision->rails, ElementsAre(0, 1));
  EXPECT_THAT(decision->degraded_reason,
              AllOf(HasSubstr("1 of 2"), HasSubstr("rank 1 (pod job-1)"), HasSubstr("rxe1"),
                    HasSubstr("port 1 is DOWN"), Not(HasSubstr("rank 0"))));
}

TEST(DecisionTest, DifferentRailsMayBeDownWhileEveryPairHasOne) {
  std::vector<RankReport> reports = {Rank(0, {0, 1, 2}), Rank(1, {0, 1, 2}), Rank(2, {0, 1, 2})};
  reports[0].rails[0].trouble = "port 1 is DOWN";
  reports[1].rails[1].trouble = "no uverbs1";
  reports[2].rails[0].unreached = "no connection to rank 1: mute";
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->verbs);
  EXPECT_THAT(decision->rails, ElementsAre(0, 1, 2));
  EXPECT_THAT(decision->degraded_reason,
              AllOf(HasSubstr("RDMA on 1 of 3 rails"),
                    HasSubstr("rank 0 (pod job-0): rail 0 (rxe0) cannot be used: port 1 is DOWN"),
                    HasSubstr("rank 1 (pod job-1): rail 1 (rxe1) cannot be used: no uverbs1"),
                    HasSubstr("rank 2 (pod job-2): rail 0 (rxe0) cannot be used: no connection to "
                              "rank 1: mute")));
  // Two of them have only different ones left.
  reports[0].rails[2].trouble = "no uverbs2";
  reports[1].rails[2].trouble = "port 2 is DOWN";
  const absl::StatusOr<Decision> tcp = Decide(reports);
  ASSERT_TRUE(tcp.ok());
  EXPECT_FALSE(tcp->verbs);
  EXPECT_THAT(tcp->degraded_reason,
              AllOf(HasSubstr("TCP instead of RDMA: no rail works between rank 0 (pod job-0) and "
                              "rank 1 (pod job-1)"),
                    HasSubstr("no uverbs2"), HasSubstr("port 2 is DOWN")));
}

TEST(DecisionTest, APairThatNoRailConnectsMakesTheJobUseTcp) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {0, 1})};
  reports[1].cut_off = "no connection to rank 0: rail 0: mute; rail 1: mute";
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->verbs);
  EXPECT_EQ(decision->degraded_reason,
            "TCP instead of RDMA: rank 1 (pod job-1): no connection to rank 0: rail 0: mute; rail "
            "1: mute");
}

TEST(DecisionTest, ARailThatOneRankWasNotGivenIsLeftOutAndNamed) {
  const absl::StatusOr<Decision> decision = Decide({Rank(0, {0, 1}), Rank(1, {0})});
  ASSERT_TRUE(decision.ok());
  EXPECT_THAT(decision->rails, ElementsAre(0));
  EXPECT_THAT(decision->degraded_reason, HasSubstr("rank 1 (pod job-1): it was not given rail 1"));
}

TEST(DecisionTest, OneRankWithoutRdmaMakesTheJobUseTcpAndSaysWhose) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {}), Rank(2, {0, 1})};
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->verbs);
  EXPECT_THAT(decision->degraded_reason,
              AllOf(HasSubstr("TCP instead of RDMA"), HasSubstr("rank 1 (pod job-1)"),
                    HasSubstr("rdma/hca"), Not(HasSubstr("rank 0")), Not(HasSubstr("rank 2"))));
}

TEST(DecisionTest, RequiredRdmaFailsWithTheSameReason) {
  for (const size_t who : {0U, 1U}) {
    std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {0})};
    reports[who].require_rdma = true;
    reports[1].rails[0].trouble = "no /dev/infiniband/uverbs0";
    const absl::Status status = Decide(reports).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("RAILHEAD_REQUIRE_RDMA=1 on rank ", who)),
                      HasSubstr("rank 1 (pod job-1): rail 0 (rxe0)"),
                      HasSubstr("no /dev/infiniband/uverbs0")));
  }
}

// What a job of two ranks got, and what each policy makes of it.
TEST(DecisionTest, ThePolicySaysWhatLessThanWasGivenLeadsTo) {
  struct Case {
    const char* what;
    std::vector<int> given[2];
    const char* trouble;  // of rail 1 on rank 1
    bool less;
    bool verbs;
  };
  const std::vector<Case> cases = {
      {"all of it", {{0, 1}, {0, 1}}, "", false, true},
      {"nothing to give", {{}, {}}, "", false, false},
      {"one rail down", {{0, 1}, {0, 1}}, "port 1 is DOWN", true, true},
      {"the only rail down", {{1}, {1}}, "port 1 is DOWN", true, false},
      {"a rail that one rank was not given", {{0, 1}, {0}}, "", true, true},
      {"one rank without RDMA", {{0, 1}, {}}, "", true, false},
  };
  for (const Case& c : cases) {
    for (const Fallback policy : {Fallback::kAllow, Fallback::kWarn, Fallback::kFail}) {
      std::vector<RankReport> reports = {Rank(0, c.given[0]), Rank(1, c.given[1])};
      for (RailReport& rail : reports[1].rails) {
        if (rail.rail == 1) rail.trouble = c.trouble;
      }
      for (RankReport& report : reports) report.fallback = policy;
      const absl::StatusOr<Decision> decision = Decide(reports);
      if (c.less && policy == Fallback::kFail) {
        EXPECT_EQ(decision.status().code(), absl::StatusCode::kFailedPrecondition) << c.what;
        EXPECT_THAT(std::string(decision.status().message()),
                    AllOf(HasSubstr("RAILHEAD_FALLBACK=fail on rank 0 (pod job-0)"),
                          HasSubstr("rank 1 (pod job-1): "), HasSubstr(c.trouble)));
        continue;
      }
      ASSERT_TRUE(decision.ok()) << c.what << ": " << decision.status();
      EXPECT_EQ(decision->verbs, c.verbs) << c.what;
      EXPECT_EQ(decision->fallback, policy);
      EXPECT_EQ(!decision->degraded_reason.empty(), c.less) << c.what;
    }
  }
}

TEST(DecisionTest, TheStrictestPolicyCounts) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {0}), Rank(2, {0, 1})};
  reports[0].fallback = reports[1].fallback = Fallback::kAllow;
  reports[2].fallback = Fallback::kWarn;
  EXPECT_EQ(Decide(reports)->fallback, Fallback::kWarn);
  reports[2].fallback = Fallback::kFail;
  EXPECT_THAT(std::string(Decide(reports).status().message()),
              HasSubstr("RAILHEAD_FALLBACK=fail on rank 2"));
  reports[2].fallback = Fallback::kAllow;
  EXPECT_EQ(Decide(reports)->fallback, Fallback::kAllow);
}

TEST(DecisionTest, TheStrictestWishForFramesApplies) {
  using config::FrameWish;
  using transport::FrameProtection;
  std::vector<RankReport> reports = {Rank(0, {}), Rank(1, {}), Rank(2, {})};
  EXPECT_EQ(Decide(reports)->protection, FrameProtection::kNone);
  reports[1].frames = FrameWish::kSigned;
  EXPECT_EQ(Decide(reports)->protection, FrameProtection::kSigned);
  reports[2].frames = FrameWish::kEncrypted;
  EXPECT_EQ(Decide(reports)->protection, FrameProtection::kChaCha20Poly1305);
  reports[0].has_aes = reports[1].has_aes = true;
  EXPECT_EQ(Decide(reports)->protection, FrameProtection::kChaCha20Poly1305) << "not on all CPUs";
  reports[2].has_aes = true;
  EXPECT_EQ(Decide(reports)->protection, FrameProtection::kAes256Gcm);
}

// NICs send what they are given; TCP and memory are not in the way of whoever wants encryption.
TEST(DecisionTest, EncryptionAndRdmaExcludeEachOther) {
  std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {0}), Rank(2, {0})};
  reports[2].frames = config::FrameWish::kEncrypted;
  const absl::Status refused = Decide(reports).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("RAILHEAD_AUTH=encrypt on rank 2 (pod job-2)"),
                    HasSubstr("RAILHEAD_TRANSPORT=tcp")));
  for (RankReport& report : reports) report.choice = TransportChoice::kTcp;
  EXPECT_FALSE(Decide(reports)->verbs);
  EXPECT_GT(Decide(reports)->protection, transport::FrameProtection::kSigned);
  EXPECT_TRUE(Decide({reports.back()}).ok()) << "alone";
}

TEST(DecisionTest, RequiredRdmaIsSatisfiedByFewerRails) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {0})};
  reports[0].require_rdma = true;
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->verbs);
  EXPECT_NE(decision->degraded_reason, "");
}

TEST(DecisionTest, NoPolicyEndsAJobThatLacksSharedMemory) {
  std::vector<RankReport> reports = {Local(0, "a"), Local(1, "a")};
  reports[0].fallback = Fallback::kFail;
  EXPECT_TRUE(Decide(reports)->shm);
  reports[1].shm_trouble = "out of memory";
  EXPECT_THAT(Decide(reports)->degraded_reason, HasSubstr("out of memory"));
}

TEST(DecisionTest, NobodyWantedRdma) {
  EXPECT_EQ(*Decide({Rank(0, {}), Rank(1, {})}), Decision{});
  std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {0})};
  for (RankReport& report : reports) report.choice = TransportChoice::kTcp;
  EXPECT_EQ(*Decide(reports), Decision{});
}

TEST(DecisionTest, VerbsWithoutARailsFileIsDegraded) {
  std::vector<RankReport> reports = {Rank(0, {}), Rank(1, {})};
  reports[0].choice = TransportChoice::kVerbs;
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->verbs);
  EXPECT_THAT(decision->degraded_reason, HasSubstr("rank 0"));
}

TEST(DecisionTest, OneRankThatChoseTcpIsNamed) {
  std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {0})};
  reports[1].choice = TransportChoice::kTcp;
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->verbs);
  EXPECT_THAT(decision->degraded_reason, HasSubstr("rank 1 (pod job-1): RAILHEAD_TRANSPORT=tcp"));
}

TEST(DecisionTest, DisjointRailsAreExplained) {
  const absl::StatusOr<Decision> decision = Decide({Rank(0, {0, 1}), Rank(1, {2})});
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->verbs);
  EXPECT_THAT(decision->degraded_reason, AllOf(HasSubstr("rank 0 (pod job-0) has rails 0, 1"),
                                               HasSubstr("rank 1 (pod job-1) has rails 2")));
}

TEST(DecisionTest, ABrokenRailsFileIsTheReason) {
  std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {})};
  reports[1].has_rails_file = true;
  reports[1].trouble = "rails.json: spec.rail is not a number";
  EXPECT_THAT(Decide(reports)->degraded_reason, HasSubstr("spec.rail is not a number"));
}

TEST(DecisionTest, ManyCulpritsGiveAShortText) {
  std::vector<RankReport> reports = {Rank(0, {0})};
  for (int rank = 1; rank < 1000; ++rank) reports.push_back(Rank(rank, {}));
  const absl::StatusOr<Decision> decision = Decide(reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_LT(decision->degraded_reason.size(), 600U);
  EXPECT_THAT(decision->degraded_reason, HasSubstr("each of ranks 1-999: "));
}

// Causes are as long as the system makes them.
TEST(DecisionTest, EachCauseOfManyRanksIsThereOnce) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const unsigned distinct = 1 + random() % 6;
    std::vector<std::string> causes;
    for (unsigned i = 0; i < distinct; ++i) {
      causes.push_back(absl::StrCat("cause ", i, ";", std::string(random() % 3000, 'x')));
    }
    std::vector<RankReport> reports;
    std::set<std::string> expected;
    const bool memory = random() % 2 == 0;
    for (int rank = 0; rank < 64; ++rank) {
      RankReport& report = reports.emplace_back(Rank(rank, {0, 1}));
      if (rank > 0 && random() % 3 == 0) continue;
      const std::string& cause = causes[random() % causes.size()];
      (memory ? report.shm_trouble : report.rails.back().trouble) = cause;
      expected.insert(cause.substr(0, cause.find(';') + 1));
    }
    const absl::StatusOr<Decision> decision = Decide(reports);
    ASSERT_TRUE(decision.ok()) << decision.status();
    const std::string& text = decision->degraded_reason;
    EXPECT_LT(text.size(), 4000U) << "seed " << seed;
    for (const std::string& cause : expected) {
      const size_t first = text.find(cause);
      ASSERT_NE(first, std::string::npos) << "seed " << seed << ": " << cause;
      EXPECT_EQ(text.find(cause, first + 1), std::string::npos) << "seed " << seed << ": " << cause;
    }
  }
}

// Whatever the reports: a verbs decision uses the rails that every rank was given, if every pair
// has one that works, and a job that requires RDMA never gets TCP, and one with the policy fail all
// rails that any rank knows.
TEST(DecisionTest, RandomReportsKeepThePromises) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::vector<RankReport> reports;
    bool required = false;
    bool strict = false;
    for (unsigned rank = 0; rank < 1 + random() % 4; ++rank) {
      RankReport report = Rank(static_cast<int>(rank), {});
      report.choice = static_cast<TransportChoice>(random() % 3);
      report.require_rdma = random() % 4 == 0;
      report.fallback = static_cast<Fallback>(random() % 3);
      required = required || report.require_rdma;
      strict = strict || report.fallback == Fallback::kFail;
      for (int rail = 0; rail < 4; ++rail) {
        if (random() % 3 != 0) {
          report.rails.push_back({rail, "d", random() % 3 == 0 ? "broken" : ""});
        }
      }
      report.has_rails_file = random() % 2 == 0;
      reports.push_back(report);
    }
    const auto has = [&](const RankReport& report, int rail, bool works) {
      for (const RailReport& r : report.rails) {
        if (r.rail == rail) {
          return report.choice != TransportChoice::kTcp && (!works || r.trouble.empty());
        }
      }
      return false;
    };
    std::vector<int> expected;
    size_t complete = 0;
    for (int rail = 0; rail < 4; ++rail) {
      const auto everywhere = [&](bool works) {
        return std::all_of(reports.begin(), reports.end(),
                           [&](const RankReport& report) { return has(report, rail, works); });
      };
      if (everywhere(false)) expected.push_back(rail);
      complete += everywhere(true) ? 1 : 0;
    }
    for (const RankReport& a : reports) {
      for (const RankReport& b : reports) {
        if (std::none_of(expected.begin(), expected.end(),
                         [&](int rail) { return has(a, rail, true) && has(b, rail, true); })) {
          // No rail connects these two, or one of them has none.
          expected.clear();
        }
      }
    }
    std::set<int> known;
    bool wanted = false;
    for (const RankReport& report : reports) {
      wanted = wanted || report.require_rdma || report.choice == TransportChoice::kVerbs ||
               (report.choice == TransportChoice::kAuto && report.has_rails_file);
      if (report.choice == TransportChoice::kTcp) continue;
      for (const RailReport& rail : report.rails) known.insert(rail.rail);
    }
    const bool less = expected.empty() ? wanted : complete < known.size();
    const absl::StatusOr<Decision> decision = Decide(reports);
    if ((required && expected.empty()) || (strict && less)) {
      EXPECT_FALSE(decision.ok());
      continue;
    }
    ASSERT_TRUE(decision.ok());
    EXPECT_EQ(decision->verbs, !expected.empty());
    EXPECT_EQ(decision->rails, expected);
    EXPECT_EQ(!decision->degraded_reason.empty(), less);
  }
}

TEST(DecisionTest, RanksThatAllHaveMetOverTheseRailsNeedNotConnectAtTheStart) {
  std::vector<RankReport> reports = {Rank(0, {0, 1}), Rank(1, {0, 1}), Rank(2, {0, 1})};
  const auto all_met = [&reports](const Met& met) {
    for (RankReport& report : reports) report.met = met;
    return Decide(reports)->all_met;
  };
  EXPECT_FALSE(all_met({}));
  EXPECT_FALSE(all_met({true, {}})) << "over TCP only";
  EXPECT_FALSE(all_met({true, {0}})) << "not over rail 1";
  EXPECT_TRUE(all_met({false, {0, 1}}));
  EXPECT_TRUE(all_met({true, {0, 1, 5}}));
  reports[1].met = {};  // a rank that joined the others
  EXPECT_FALSE(Decide(reports)->all_met);
  for (RankReport& report : reports) report.choice = TransportChoice::kTcp;
  EXPECT_FALSE(all_met({false, {0, 1}})) << "not over TCP";
  EXPECT_TRUE(all_met({true, {}}));
}

TEST(DecisionTest, ReportsTravel) {
  RankReport report = Rank(3, {0, 5});
  report.choice = TransportChoice::kVerbs;
  report.require_rdma = true;
  report.fallback = Fallback::kFail;
  report.trouble = "x";
  report.ib_traffic_class = 106;
  report.ib_service_level = 3;
  report.frames = config::FrameWish::kEncrypted;
  report.has_aes = true;
  report.met = {true, {0, 5}};
  report.rails[1].trouble = "down";
  report.rails[0].rate = "400 Gb/sec (4X NDR)";
  report.rails[0].mtu = 4096;
  report.rails[0].unreached = "no connection to rank 2: mute";
  report.cut_off = "no connection to rank 1: rail 0: mute; rail 5: mute";
  report.tcp = {{"r0", ""}, {"r1", "is down"}, {"r2", "there is none", true}};
  report.cpu = {uint64_t{1} << 40U, 1500};
  report.configured = {{"commName", "tp"}, {"rails", "0,5"}};
  const std::string bytes = Encode(report);
  const absl::StatusOr<RankReport> parsed = ParseReport(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, report);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseReport(absl::string_view(bytes).substr(0, size)).ok());
  }
  EXPECT_FALSE(ParseReport(bytes + "x").ok());
}

TEST(DecisionTest, RanksOfDifferentClassesOrLevelsDoNotStartOverVerbs) {
  for (int RankReport::*const value :
       {&RankReport::ib_traffic_class, &RankReport::ib_service_level}) {
    std::vector<RankReport> reports = {Rank(0, {0}), Rank(1, {0}), Rank(2, {0})};
    reports[1].*value = 5;
    const absl::Status status = Decide(reports).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(value == &RankReport::ib_traffic_class ? "RAILHEAD_IB_TC='5'"
                                                                       : "RAILHEAD_IB_SL='5'"),
                      HasSubstr("rank 1 (pod job-1)"), HasSubstr("rank 0 (pod job-0) '0'")));
    for (RankReport& report : reports) report.*value = 5;
    EXPECT_TRUE(Decide(reports)->verbs);
    // Over TCP they mean nothing.
    reports = {Rank(0, {}), Rank(1, {})};
    reports[1].*value = 5;
    EXPECT_TRUE(Decide(reports).ok());
  }
}

TEST(DecisionTest, RanksThatWouldChooseDifferentlyDoNotStart) {
  std::vector<RankReport> reports(3);
  for (size_t i = 0; i < reports.size(); ++i) reports[i].name = absl::StrCat("rank ", i);
  reports[2].algorithms = "all_reduce=ring";
  const absl::StatusOr<Decision> decision = Decide(reports);
  EXPECT_TRUE(absl::IsFailedPrecondition(decision.status()));
  EXPECT_THAT(
      std::string(decision.status().message()),
      HasSubstr("rank 2 has RAILHEAD_ALGO='all_reduce=ring', and rank 0 ''; set the same value"));
}

}  // namespace
}  // namespace railhead::comm
