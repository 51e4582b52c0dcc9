// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/finding_checks.h"

namespace railhead::preflight {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Job kRdma = {"verbs", ""};

// A rail of RoCE with which all is well.
RailFacts GoodRail(int number, int rank) {
  RailFacts rail;
  rail.name = {number, absl::StrCat("mlx5_", number), 1, "verbs"};
  rail.state = "ACTIVE";
  rail.physical = "LinkUp";
  rail.link_layer = "Ethernet";
  rail.rate = "400 Gb/sec (4X NDR)";
  rail.port.emplace();
  rail.port->mtu = 4096;
  rail.port->largest_mtu = 4096;
  rail.port->gid_kind = "RoCE v2 over IPv4";
  rail.port->gid_index = 3;
  rail.port->gid_address = absl::StrCat("10.", number, ".0.", rank);
  rail.device_node = absl::StrCat("/dev/infiniband/uverbs", number);
  rail.ecn = "on for priorities 3";
  rail.counted = true;
  return rail;
}

// A world of so many ranks, two rails each, with which all is well, and every pair answers in 10
// us.
std::vector<RankFacts> GoodWorld(int world) {
  std::vector<RankFacts> ranks;
  for (int rank = 0; rank < world; ++rank) {
    RankFacts& facts = ranks.emplace_back();
    facts.name = absl::StrCat("rank ", rank, " (pod p", rank, " on node n", rank, ")");
    facts.registers = 64 << 20;
    facts.least_bytes = 16 << 20;
    for (const int rail : {0, 1}) facts.rails.push_back(GoodRail(rail, rank));
    for (int peer = rank + 1; peer < world; ++peer) {
      for (const int rail : {0, 1}) facts.pings.push_back({peer, rail, 10000, ""});
    }
  }
  return ranks;
}

std::string Line(const RankFinding& finding) {
  return absl::StrCat(SeverityName(finding.severity), " ", finding.check, " | ", finding.object,
                      " | ", finding.observed, " | ", finding.fix);
}

// Those that are not ok.
std::vector<std::string> Troubles(const Job& job, const std::vector<RankFacts>& ranks) {
  std::vector<std::string> lines;
  for (const RankFinding& finding : FindAll(job, ranks)) {
    if (finding.severity != Severity::kOk) lines.push_back(Line(finding));
  }
  return lines;
}

TEST(FindingsTest, WhereAllIsWellThereIsALineForEachCheckOfARail) {
  const std::string rail0 = "rail 0 (mlx5_0 port 1, verbs): all 4 ranks | ";
  std::vector<std::string> lines;
  for (const RankFinding& finding : FindAll(kRdma, GoodWorld(4))) {
    if (!finding.rail.has_value() || finding.rail->rail == 0) lines.push_back(Line(finding));
    EXPECT_THAT(finding.ranks, ElementsAre(0, 1, 2, 3));
  }
  EXPECT_THAT(
      lines, ElementsAre(
                 "ok transport | all 4 ranks | verbs | ", "ok memlock | all 4 ranks | unlimited | ",
                 absl::StrCat("ok port | ", rail0, "ACTIVE, LinkUp | "),
                 absl::StrCat("ok rate | ", rail0, "400 Gb/sec (4X NDR) | "),
                 absl::StrCat("ok mtu | ", rail0, "4096 bytes | "),
                 absl::StrCat("ok gid | ", rail0,
                              "RoCE v2 over IPv4 at index 3: 10.0.0.0, 10.0.0.1, 10.0.0.2, "
                              "10.0.0.3 | "),
                 absl::StrCat("ok device_node | ", rail0,
                              "/dev/infiniband/uverbs0 can be read and written | "),
                 absl::StrCat("ok flow_control | ", rail0,
                              "ECN is on for priorities 3; PFC is not readable here | "),
                 absl::StrCat("ok counters | ", rail0, "no counter increased during the check | "),
                 absl::StrCat("ok ping | ", rail0,
                              "round trip of 10.0 us (median of 6 pairs; slowest: "
                              "10.0 us) | ")));
}

// A large world that is well needs no more lines than a small one.
TEST(FindingsTest, LinesDoNotGrowWithRanks) {
  const std::vector<RankFinding> few = FindAll(kRdma, GoodWorld(3));
  const std::vector<RankFinding> many = FindAll(kRdma, GoodWorld(100));
  EXPECT_EQ(few.size(), many.size());
  for (const RankFinding& finding : many) {
    if (finding.check != "gid") continue;
    EXPECT_THAT(finding.observed, HasSubstr(" and 96 more"));
  }
}

struct Case {
  const char* name;
  void (*spoil)(RankFacts& rank2);
  std::vector<std::string> lines;  // all that are not ok
  friend void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }
};

class SpoiltTest : public ::testing::TestWithParam<Case> {};

TEST_P(SpoiltTest, IsNamedWithRankValueAndFix) {
  std::vector<RankFacts> ranks = GoodWorld(4);
  GetParam().spoil(ranks[2]);
  EXPECT_EQ(Troubles(kRdma, ranks), GetParam().lines);
}

constexpr const char* kRail1 = "rail 1 (mlx5_1 port 1, verbs): rank 2 (pod p2 on node n2) | ";
constexpr const char* kRank2 = "rank 2 (pod p2 on node n2) | ";

INSTANTIATE_TEST_SUITE_P(
    All, SpoiltTest,
    ::testing::Values(
        Case{"trouble",
             [](RankFacts& rank) {
               rank.rails[1].trouble = "the port is DOWN; check the cable";
               rank.rails[1].state = "DOWN";
               rank.rails[1].port.reset();
             },
             {absl::StrCat("fail port | ", kRail1,
                           "the port is DOWN; check the cable | repair it: until then this rank "
                           "does not use the rail")}},
        Case{"port_down",
             [](RankFacts& rank) {
               rank.rails[1].state = "INIT";
               rank.rails[1].physical = "Polling";
             },
             {absl::StrCat("fail port | ", kRail1,
                           "INIT, Polling | check the cable, the switch port, that the network "
                           "interface is up, and on InfiniBand that a subnet manager runs")}},
        Case{"no_such_rail",
             [](RankFacts& rank) { rank.rails.resize(1); },
             {absl::StrCat("fail port | ", kRail1,
                           "others were given this rail | give all pods of the job the "
                           "same number of rdma/hca, on nodes with this rail")}},
        Case{"rate",
             [](RankFacts& rank) { rank.rails[1].rate = "100 Gb/sec (4X EDR)"; },
             {absl::StrCat("warn rate | ", kRail1,
                           "100 Gb/sec (4X EDR), others have 400 Gb/sec (4X NDR) | the slowest "
                           "port sets the pace of all: reseat or replace its cable, and check the "
                           "speed that its switch port is set to")}},
        Case{"mtu",
             [](RankFacts& rank) { rank.rails[1].port->mtu = 1024; },
             {absl::StrCat("warn mtu | ", kRail1,
                           "1024 bytes, others have 4096 | give the rail's interfaces and "
                           "switch ports the same MTU on all nodes: the smallest one is used")}},
        Case{"attached_elsewhere",
             [](RankFacts& rank) {
               rank.rails[1].attached_elsewhere = "10.2.0.7 is an address of mlx5_5 (0000:c1:00.0)";
             },
             {absl::StrCat("warn attachment | ", kRail1,
                           "this rail has no address of the pod: 10.2.0.7 is an address of mlx5_5 "
                           "(0000:c1:00.0), which the pod did not get | attach the pod to the NIC "
                           "of its HCA: make each rail a resource with its own attachment "
                           "(perRail: true), or pass the NIC that the kubelet chose to the CNI "
                           "plugin (deviceIds: pciAddress)")}},
        Case{"leaves_elsewhere",
             [](RankFacts& rank) {
               rank.rails[1].leaves_elsewhere = "its bytes to 10.1.0.3 leave by eth0, not by eth1";
             },
             {absl::StrCat("warn interface | ", kRail1,
                           "its bytes to 10.1.0.3 leave by eth0, not by eth1 | give each rail a "
                           "separate subnet, or route by source: `ip rule add from ADDRESS table "
                           "N; ip route add SUBNET dev INTERFACE src ADDRESS table N`, with "
                           "net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and rp_filter=2")}},
        Case{"attached_elsewhere_beside_a_plain_rail",
             [](RankFacts& rank) {
               rank.rails[1].attached_elsewhere = "10.2.0.7 is an address of mlx5_5 (0000:c1:00.0)";
               rank.rails[1].has_node_gid = true;
             },
             {absl::StrCat("note attachment | ", kRail1,
                           "this rail has no address of the pod: 10.2.0.7 is an address of mlx5_5 "
                           "(0000:c1:00.0), which the pod did not get; connections start from the "
                           "node's address | attach the pod to the NIC of its HCA: make each rail "
                           "a resource with its own attachment (perRail: true), or pass the NIC "
                           "that the kubelet chose to the CNI plugin (deviceIds: pciAddress)")}},
        Case{"roce_v1",
             [](RankFacts& rank) {
               rank.rails[1].port->gid_kind = "RoCE v1 over IPv4";
               rank.rails[1].port->gid_index = 2;
               rank.rails[1].port->roce_v1 = true;
             },
             {absl::StrCat(
                 "warn gid | ", kRail1,
                 "RoCE v1 over IPv4 at index 2: 10.1.0.2 | routers do not forward RoCE v1, and "
                 "switches do not spread it over links: give the rail's interface "
                 "an IP address, and let the adapter use RoCE v2")}},
        Case{"device_node",
             [](RankFacts& rank) {
               rank.rails[1].device_node_trouble = "/dev/infiniband/uverbs1: Permission denied";
             },
             {absl::StrCat("fail device_node | ", kRail1,
                           "/dev/infiniband/uverbs1: Permission denied | request rdma/hca in the "
                           "pod, which adds the device node, and run the pod as a user that may "
                           "read and write it")}},
        Case{"ecn_off",
             [](RankFacts& rank) { rank.rails[1].ecn = "off"; },
             {absl::StrCat("warn flow_control | ", kRail1,
                           "ECN is off; PFC is not readable here | enable ECN for the priority "
                           "of the rail's traffic, on the NIC and on every switch port")}},
        Case{"ecn_unseen",
             [](RankFacts& rank) { rank.rails[1].ecn = ""; },
             {absl::StrCat("note flow_control | ", kRail1,
                           "PFC and ECN are not readable here | check on the node: `mlnx_qos -i "
                           "INTERFACE` or `dcb pfc show dev INTERFACE`; RoCE needs PFC or ECN for "
                           "its priority there and on every switch port")}},
        Case{"counters",
             [](RankFacts& rank) {
               rank.rails[1].growth = {{"retries", 3}, {"cnp_handled", 17}};
             },
             {absl::StrCat("warn counters | ", kRail1,
                           "retries by 3, cnp_handled by 17 during the check, counted by the port "
                           "for all its users | packets are lost, marked or corrupt with almost no "
                           "load: check the cable, PFC and ECN of the traffic class, and other "
                           "users of the port")}},
        Case{"nothing_readable",
             [](RankFacts& rank) {
               rank.rails[1].state = rank.rails[1].rate = rank.rails[1].device_node = "";
               rank.rails[1].counted = false;
             },
             {absl::StrCat("note port | ", kRail1,
                           "its state is not readable here | read it on the node: ibstat mlx5_1"),
              absl::StrCat("note rate | ", kRail1,
                           "not readable here | read it on the node: ibstat mlx5_1"),
              absl::StrCat("note device_node | ", kRail1,
                           "the rails file does not name it | check in the pod that it may read "
                           "and write its device node: ls -l /dev/infiniband"),
              absl::StrCat("note counters | ", kRail1,
                           "not readable here | read them in the node agent's metrics: "
                           "railhead_port_*{device=\"mlx5_1\"}")}},
        Case{"little_memlock",
             [](RankFacts& rank) { rank.memlock = 32 << 20; },
             {absl::StrCat("warn memlock | ", kRank2,
                           "RLIMIT_MEMLOCK is 32 MiB, but the rails would use 64 MiB: they use "
                           "less and are slower | set LimitMEMLOCK=infinity for the node's "
                           "container runtime service, or devicePlugin.memlock in Railhead's chart "
                           "(the capability IPC_LOCK helps only processes that run as root)")}},
        Case{"no_memlock",
             [](RankFacts& rank) { rank.memlock = 64 << 10; },
             {absl::StrCat(
                 "fail memlock | ", kRank2,
                 "RLIMIT_MEMLOCK is 64 KiB, but the rails need at least 16 MiB and would "
                 "use 64 MiB | set LimitMEMLOCK=infinity for the node's container runtime "
                 "service, or devicePlugin.memlock in Railhead's chart (the capability IPC_LOCK "
                 "helps only processes that run as root)")}},
        Case{"enough_memlock", [](RankFacts& rank) { rank.memlock = 64 << 20; }, {}}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(FindingsTest, ASmallMtuOnAllRanksIsToldOnceWhereThePortCouldHaveMore) {
  std::vector<RankFacts> ranks = GoodWorld(2);
  for (RankFacts& rank : ranks) rank.rails[0].port->mtu = 1024;
  EXPECT_THAT(Troubles(kRdma, ranks),
              ElementsAre("warn mtu | rail 0 (mlx5_0 port 1, verbs): all 2 ranks | 1024 bytes, but "
                          "the port supports 4096 | raise the MTU of the interface and of its "
                          "switch port (4200 bytes or more, commonly 9000)"));
  for (RankFacts& rank : ranks) rank.rails[0].port->largest_mtu = 1024;
  EXPECT_THAT(Troubles(kRdma, ranks), IsEmpty());
}

TEST(FindingsTest, OfTwoRatesTheFirstRanksIsRightWhereAsManyHaveEither) {
  std::vector<RankFacts> ranks = GoodWorld(2);
  ranks[1].rails[0].rate = "100 Gb/sec (4X EDR)";
  EXPECT_THAT(Troubles(kRdma, ranks), ElementsAre(HasSubstr("rank 1 (pod p1 on node n1)")));
}

TEST(FindingsTest, RanksWithTheSameTroubleShareALine) {
  std::vector<RankFacts> ranks = GoodWorld(8);
  for (const size_t rank : {1U, 3U, 5U, 6U, 7U}) ranks[rank].rails[0].trouble = "no uverbs";
  const std::vector<std::string> troubles = Troubles(kRdma, ranks);
  EXPECT_THAT(troubles, ElementsAre(AllOf(HasSubstr("rank 1 (pod p1 on node n1), rank 3"),
                                          HasSubstr(" and 1 more | no uverbs |"))));
}

// ---- Pings ----

PingFacts& PingOf(std::vector<RankFacts>& ranks, int low, int high, int rail) {
  std::vector<PingFacts>& pings = ranks[static_cast<size_t>(low)].pings;
  return *std::find_if(pings.begin(), pings.end(), [&](const PingFacts& ping) {
    return ping.peer == high && ping.rail == rail;
  });
}

TEST(FindingsTest, APairThatDoesNotAnswerIsNamed) {
  std::vector<RankFacts> ranks = GoodWorld(4);
  PingOf(ranks, 1, 3, 1).trouble = "it does not answer";
  EXPECT_THAT(
      Troubles(kRdma, ranks),
      ElementsAre(
          "fail ping | rail 1 (mlx5_1 port 1, verbs): rank 1 (pod p1 on node n1) | with rank "
          "3 (pod p3 on node n3): it does not answer | check that the rail's network connects "
          "the nodes: the same subnet or a route, the same VLAN, and "
          "switch ports that are up"));
}

TEST(FindingsTest, LargeFramesThatDoNotPassNameBothSizesAndTheMtu) {
  std::vector<RankFacts> ranks = GoodWorld(4);
  PingFacts& ping = PingOf(ranks, 1, 3, 1);
  ping.large_bytes = 65536;
  ping.large_trouble = "it does not answer";
  ranks[3].rails[1].port.reset();
  EXPECT_THAT(Troubles(kRdma, ranks),
              ElementsAre(AllOf(
                  HasSubstr("fail mtu | rail 1 (mlx5_1 port 1, verbs): rank 1 (pod p1 on node n1) "
                            "| with rank 3 (pod p3 on node n3): frames of 8 bytes pass, frames of "
                            "65536 bytes do not (it does not answer), with interfaces of MTU 4096 "
                            "and ? | "),
                  HasSubstr("give all interfaces, switch ports and tunnels of the rail one MTU"))));
}

TEST(FindingsTest, ARailThatARankCannotOpenIsNotAlsoSilent) {
  std::vector<RankFacts> ranks = GoodWorld(3);
  ranks[1].rails[0].trouble = "interface 'r0' is down";
  PingOf(ranks, 0, 1, 0).trouble = "not connected yet";
  PingOf(ranks, 1, 2, 0).trouble = "not connected yet";
  EXPECT_THAT(Troubles(kRdma, ranks),
              ElementsAre(AllOf(HasSubstr("fail port | rail 0"), HasSubstr("rank 1"),
                                HasSubstr("interface 'r0' is down"))));
}

TEST(FindingsTest, ARankThatIsSlowWithManyIsToBlameAndNotTheOthers) {
  std::vector<RankFacts> ranks = GoodWorld(6);
  for (const int other : {0, 1, 2, 3, 5}) {
    PingOf(ranks, std::min(other, 4), std::max(other, 4), 0).nanoseconds = 50000;
  }
  PingOf(ranks, 0, 1, 0).nanoseconds = 30000;  // three times the median is not over it
  EXPECT_THAT(
      Troubles(kRdma, ranks),
      ElementsAre(
          "warn ping | rail 0 (mlx5_0 port 1, verbs): rank 4 (pod p4 on node n4) | with rank "
          "0 (pod p0 on node n0), rank 1 (pod p1 on node n1), rank 2 (pod p2 on node n2), "
          "rank 3 (pod p3 on node n3) and 1 more: round trip of 50.0 us, 5.0 times the "
          "median of 10.0 us with the first of these 5 | check for a busy core on that node, "
          "and for a long or faulty path: cable, switch port, cabling to the wrong leaf"));
}

TEST(FindingsTest, ManyPairsAreCounted) {
  std::vector<RankFacts> ranks = GoodWorld(24);
  for (int rank = 0; rank < 24; rank += 2) {
    PingOf(ranks, rank, rank + 1, 0).trouble = "it does not answer";
  }
  const std::vector<std::string> troubles = Troubles(kRdma, ranks);
  ASSERT_EQ(troubles.size(), 9U);
  EXPECT_THAT(troubles[7], HasSubstr("rank 14 (pod p14 on node n14) | with rank 15"));
  EXPECT_THAT(troubles[8],
              AllOf(HasSubstr("fail ping | rail 0"), HasSubstr("rank 16 (pod p16 on node n16)"),
                    HasSubstr(" and 4 more | 4 more pairs of these ranks, the first: it does not "
                              "answer | check that")));
}

// Also where each rail has one pair only.
TEST(FindingsTest, ASlowRailShowsBesideTheOther) {
  std::vector<RankFacts> ranks = GoodWorld(2);
  PingOf(ranks, 0, 1, 1).nanoseconds = 40000;
  EXPECT_THAT(Troubles(kRdma, ranks), ElementsAre(AllOf(HasSubstr("warn ping | rail 1"),
                                                        HasSubstr("4.0 times the median"))));
}

TEST(FindingsTest, WhereNobodyAnswersThereIsNoMedian) {
  std::vector<RankFacts> ranks = GoodWorld(2);
  for (const int rail : {0, 1}) PingOf(ranks, 0, 1, rail).trouble = "it does not answer";
  int pings = 0;
  for (const RankFinding& finding : FindAll(kRdma, ranks)) {
    if (finding.check != "ping") continue;
    EXPECT_EQ(finding.severity, Severity::kFail);
    ++pings;
  }
  EXPECT_EQ(pings, 2);
}

// ---- Other transports ----

TEST(FindingsTest, RailsOfTcpSayWhatDoesNotApply) {
  std::vector<RankFacts> ranks(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    ranks[rank].name = absl::StrCat("rank ", rank);
    RailFacts& rail = ranks[rank].rails.emplace_back();
    rail.name = {0, "eth0", 0, "tcp"};
    rail.state = "up";
    rail.port.emplace();
    rail.port->mtu = rank == 0 ? 1500 : 9000;
  }
  ranks[0].pings.push_back({1, 0, 20000, ""});
  EXPECT_THAT(
      Troubles({"tcp", ""}, ranks),
      ElementsAre("note transport | all 2 ranks | gid, device_node, flow_control, counters and "
                  "memlock do not apply to rails of TCP | nothing to do if TCP is intended; else "
                  "set RAILHEAD_TRANSPORT=verbs to check the RDMA rails",
                  "note rate | rail 0 (eth0, tcp): all 2 ranks | not readable here | nothing to do "
                  "for a virtual interface; of a NIC, read it on the node: ethtool eth0",
                  HasSubstr("warn mtu | rail 0 (eth0, tcp): rank 1 | 9000 bytes, others have "
                            "1500 | ")));
}

TEST(FindingsTest, LessThanWasWantedFails) {
  EXPECT_THAT(
      Troubles({"tcp", "TCP instead of RDMA: rank 1: no device"}, GoodWorld(1)),
      ElementsAre("fail transport | rank 0 (pod p0 on node n0) | TCP instead of RDMA: rank "
                  "1: no device | remove this cause, or set RAILHEAD_TRANSPORT=tcp on all "
                  "ranks if TCP is intended",
                  HasSubstr("note transport"),
                  "note ping | rank 0 (pod p0 on node n0) | a single rank has no peer to ping | "
                  "to measure round trips, start it once for each rank, with the same "
                  "WORLD_SIZE"));
}

// Ranks with InfiniBand rails and all that NCCL needs for SHARP.
std::vector<RankFacts> SharpWorld(int world) {
  std::vector<RankFacts> ranks = GoodWorld(world);
  for (RankFacts& rank : ranks) {
    for (RailFacts& rail : rank.rails) rail.link_layer = "InfiniBand";
    rank.sharp = {true,
                  "libnccl-net.so",
                  "/opt/p/libnccl-net.so",
                  true,
                  "/opt/s/libsharp_coll.so.5",
                  "/opt/s/sharp_hello"};
  }
  return ranks;
}

std::vector<std::string> OfSharp(const std::vector<RankFacts>& ranks) {
  std::vector<std::string> lines;
  for (const RankFinding& finding : FindAll(kRdma, ranks)) {
    if (finding.check == "sharp") lines.push_back(Line(finding));
  }
  return lines;
}

TEST(SharpFindingsTest, WhereAllIsThereSharpAmCanBeAsked) {
  EXPECT_THAT(OfSharp(SharpWorld(3)),
              ElementsAre("ok sharp | all 3 ranks | NCCL's plugin /opt/p/libnccl-net.so has "
                          "CollNet | ",
                          "ok sharp | all 3 ranks | /opt/s/libsharp_coll.so.5 | ",
                          "note sharp | all 3 ranks | sharp_am was not asked | ask it from rank "
                          "0's pod: /opt/s/sharp_hello -d mlx5_0:1 -v 3"));
  std::vector<RankFacts> ranks = SharpWorld(2);
  for (RankFacts& rank : ranks) rank.sharp.hello.clear();
  EXPECT_THAT(OfSharp(ranks)[2], HasSubstr("`sharp_hello -d DEVICE:PORT -v 3`"));
  ranks[0].sharp.hello = ranks[1].sharp.hello = "/tmp/a; evil";
  EXPECT_THAT(OfSharp(ranks)[2], Not(HasSubstr("evil")));
  EXPECT_THAT(OfSharp(GoodWorld(3)), IsEmpty());
}

TEST(SharpFindingsTest, WhatIsMissingIsNamedWithItsRank) {
  const auto warnings = [](const std::vector<RankFacts>& ranks) {
    std::vector<std::string> lines = OfSharp(ranks);
    std::erase_if(lines, [](const std::string& line) { return line.substr(0, 4) != "warn"; });
    return lines;
  };
  std::vector<RankFacts> ranks = SharpWorld(3);
  EXPECT_THAT(warnings(ranks), IsEmpty());
  ranks[1].sharp.plugin.clear();
  EXPECT_THAT(warnings(ranks),
              ElementsAre(AllOf(HasSubstr("rank 1 (pod p1 on node n1) | NCCL's plugin "
                                          "libnccl-net.so was not found in the library path | "),
                                HasSubstr("name it in NCCL_NET_PLUGIN"))));
  ranks = SharpWorld(3);
  ranks[1].sharp.has_collnet = false;
  ranks[1].sharp.library.clear();
  EXPECT_THAT(warnings(ranks),
              ElementsAre(HasSubstr("NCCL's plugin /opt/p/libnccl-net.so has no CollNet | "),
                          HasSubstr("rank 1 (pod p1 on node n1) | libsharp was not found")));
  ranks = SharpWorld(3);
  ranks[2].sharp = {};
  EXPECT_THAT(warnings(ranks),
              ElementsAre(HasSubstr("rank 2 (pod p2 on node n2) | NCCL_COLLNET_ENABLE is not 1, "
                                    "as it is on other ranks | set ")));
}

TEST(SharpFindingsTest, EveryRailMustBeInfiniBand) {
  std::vector<RankFacts> ranks = SharpWorld(3);
  ranks[0].rails[1].link_layer = "Ethernet";
  ranks[2].rails[1].link_layer = "Ethernet";
  ranks[1].rails[0].link_layer = "";  // not readable
  EXPECT_THAT(OfSharp(ranks),
              ::testing::Contains(AllOf(
                  HasSubstr("warn sharp | rail 1 (mlx5_1 port 1, verbs): rank 0 (pod p0 on node "
                            "n0), rank 2 (pod p2 on node n2) | the link layer is Ethernet | "),
                  HasSubstr("NCCL_COLLNET_ENABLE=0"))));
  // The others may ask.
  EXPECT_THAT(OfSharp(ranks), ::testing::Contains(HasSubstr("note sharp | rank 1 (pod p1")));
  ranks = SharpWorld(2);
  for (RankFacts& rank : ranks) rank.rails.clear();
  EXPECT_THAT(OfSharp(ranks),
              ::testing::Contains(HasSubstr("warn sharp | all 2 ranks | has no InfiniBand rail")));
}

TEST(FindingsTest, EachHasAllItsFieldsAndIsPrintedAlike) {
  std::mt19937 random(7);
  const auto text = [&](std::vector<std::string> texts) { return texts[random() % texts.size()]; };
  std::set<std::pair<std::string, Severity>> made;
  for (int world = 0; world < 100; ++world) {
    std::vector<RankFacts> ranks = GoodWorld(1 + static_cast<int>(random() % 5));
    const Job job = {text({"verbs", "tcp"}), text({"", "TCP instead of RDMA: no device"})};
    for (RankFacts& rank : ranks) {
      rank.sharp = {random() % 2 == 0, "libnccl-net.so",        text({"", "/a"}),
                    random() % 2 == 0, text({"", "/libsharp"}), text({"", "/hello"})};
      if (random() % 8 == 0) rank.name = "";
      if (random() % 4 == 0) rank.memlock = uint64_t{16} << (10 + random() % 17);
      if (random() % 8 == 0) rank.rails.pop_back();
      for (RailFacts& rail : rank.rails) {
        if (random() % 2 == 0) continue;
        rail.name.transport = job.transport;
        rail.trouble = text({"", "the port is down", "\x1b[2J\n"});
        rail.state = text({"ACTIVE", "up", "DOWN", ""});
        rail.physical = text({"LinkUp", ""});
        rail.rate = text({"100 Gb/sec", "400 Gb/sec", ""});
        rail.link_layer = text({"InfiniBand", "Ethernet"});
        rail.ecn = text({"", "off", "on for priorities 3"});
        rail.device_node = text({"", "/dev/infiniband/uverbs0"});
        rail.device_node_trouble = text({"", "", "Permission denied"});
        rail.attached_elsewhere = text({"", "10.2.0.7 is an address of mlx5_5"});
        rail.leaves_elsewhere = text({"", "its bytes leave by eth0"});
        rail.has_node_gid = random() % 2 == 0;
        rail.counted = random() % 2 == 0;
        if (random() % 3 == 0) rail.growth = {{"retries", 3}};
        rail.port->mtu = 1024 << (random() % 3);
        rail.port->roce_v1 = random() % 2 == 0;
        rail.port->gid_kind = text({"", "RoCE v2 over IPv4"});
        if (random() % 8 == 0) rail.port.reset();
      }
      for (PingFacts& ping : rank.pings) {
        ping.trouble = text({"", "", "it does not answer"});
        ping.large_trouble = text({"", "", "it does not answer"});
        ping.nanoseconds = text({"", "slow"}).empty() ? 10000 : 90000;
      }
    }
    for (const RankFinding& finding : FindAll(job, ranks)) {
      ExpectWhole(finding);
      made.emplace(finding.check, finding.severity);
    }
    for (const RankFacts& rank : ranks) {
      for (const std::string& line : WarningsOf(rank, UsualOf(ranks))) {
        EXPECT_THAT(line, HasSubstr("; "));
      }
    }
  }
  EXPECT_EQ(made.size(), 37U) << "each check, with each severity that it can have";
}

// ---- At start ----

TEST(WarningsTest, ARankWarnsOfItselfAlone) {
  std::vector<RankFacts> ranks = GoodWorld(3);
  ranks[1].rails[0].rate = "100 Gb/sec (4X EDR)";
  ranks[1].memlock = 32 << 20;
  EXPECT_THAT(WarningsOf(ranks[0], UsualOf(ranks)), IsEmpty());
  EXPECT_THAT(
      WarningsOf(ranks[1], UsualOf(ranks)),
      ElementsAre(AllOf(HasSubstr("memlock: RLIMIT_MEMLOCK is 32 MiB"),
                        HasSubstr("; set LimitMEMLOCK=infinity")),
                  AllOf(HasSubstr("rail 0 (mlx5_0 port 1, verbs): rate: 100 Gb/sec (4X EDR), "
                                  "others have 400"),
                        HasSubstr("; the slowest port sets the pace"))));
}

// ---- The exchange ----

TEST(FactsTest, TravelWhole) {
  std::vector<RankFacts> ranks = GoodWorld(3);
  ranks[0].rails[0].growth = {{"retries", 5}};
  ranks[0].rails[1].port.reset();
  ranks[0].rails[1].trouble = "down";
  ranks[0].rails[1].attached_elsewhere = "10.2.0.7 is an address of mlx5_5";
  ranks[0].rails[1].leaves_elsewhere = "its bytes to 10.1.0.3 leave by eth0";
  ranks[0].rails[1].has_node_gid = true;
  ranks[0].pings[0].trouble = "it does not answer";
  ranks[0].pings[1].large_bytes = 65536;
  ranks[0].pings[1].large_trouble = "nor does it answer";
  ranks[0].sharp = {true, "libnccl-net.so", "/a", true, "/b", "/c"};
  for (const RankFacts& facts : ranks) {
    const absl::StatusOr<RankFacts> parsed = ParseFacts(Encode(facts));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, facts);
  }
  const std::string bytes = Encode(ranks[0]);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseFacts(absl::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseFacts(bytes + "x").ok());
}

}  // namespace
}  // namespace railhead::preflight
