// SPDX-License-Identifier: Apache-2.0
//
// Ranks with RDMA rails of fake NICs, before and at the start of a job: what they find, and what
// they say where something is missing.
#include "runtime/comm/setup/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fabric/pod_rails.h"
#include "fabric/testing/sysfs_tree.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/testing/http.h"
#include "runtime/testing/ranks.h"
#include "runtime/transport/verbs/fake_verbs.h"

namespace railhead::comm {
namespace {

using preflight::RankFinding;
using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using transport::verbs::FakeDevice;
using transport::verbs::FakeVerbs;

constexpr int kWorld = 3;
constexpr int kRails = 2;

std::string NicName(int rank, int rail) { return absl::StrCat("nic", rank, "_", rail); }

// Each rank has a host of its own, with a NIC for each rail. Change them before they are used.
class Hosts {
 public:
  Hosts() {
    for (int rank = 0; rank < kWorld; ++rank) {
      for (int rail = 0; rail < kRails; ++rail) {
        FakeDevice& nic = nics[rank][rail];
        nic.name = NicName(rank, rail);
        nic.gids = {transport::verbs::FakeGid(3, absl::StrCat("10.", rail, ".0.", rank + 1),
                                              IBV_GID_TYPE_ROCE_V2)};
        fabric::testing::FakeHca hca;
        hca.name = nic.name;
        hca.link_layer = "Ethernet";
        hca.uverbs = rail;
        hca.pci = absl::StrCat("0000:1", rail, ":00.0");
        trees[rank].AddHca(hca);
        trees[rank].Write(absl::StrCat("/sys/class/infiniband/", nic.name,
                                       "/ports/1/hw_counters/out_of_sequence"),
                          "5\n");
      }
    }
  }

  // Of a rank's rails file; none: it has no file.
  std::vector<int> listed[kWorld] = {{0, 1}, {0, 1}, {0, 1}};
  FakeDevice nics[kWorld][kRails];
  fabric::testing::SysfsTree trees[kWorld];
};

// Runs body(options) as every rank.
template <class Body>
auto OnAll(const Hosts& hosts, Body body) {
  std::vector<FakeDevice> all;
  for (int rank = 0; rank < kWorld; ++rank) {
    fabric::PodRails rails{"node", {}};
    for (const int rail : hosts.listed[rank]) {
      fabric::PodRail& entry = rails.rails.emplace_back();
      entry.rail = rail;
      entry.device = NicName(rank, rail);
      if (!hosts.nics[rank][rail].name.empty()) all.push_back(hosts.nics[rank][rail]);
    }
    if (!hosts.listed[rank].empty()) {
      hosts.trees[rank].Write("/run/railhead/rails.json", fabric::ToJson(rails));
    }
  }
  const auto fake = std::make_shared<FakeVerbs>(all);
  // Their time is that of the ranks.
  std::optional<RunningClock> clock(std::in_place, fake);
  const int port = FreePort();
  auto results = RunRanks(kWorld, [&](int rank) {
    CommunicatorOptions options;
    options.rendezvous = {rank, kWorld, "127.0.0.1", port};
    options.setup.settings.pod = absl::StrCat("p", rank);
    options.setup.settings.timeout = absl::Seconds(20);
    options.setup.settings.log_level = LogLevel::kError;
    options.setup.root = hosts.trees[rank].root();
    options.setup.open_rdma_rail = [&fake](const fabric::PodRail& rail) {
      return OpenFakeRail(fake, rail);
    };
    return body(std::move(options));
  });
  clock.reset();
  EXPECT_THAT(fake->violations(), IsEmpty());
  EXPECT_EQ(fake->open_objects(), 0U) << "nothing stays";
  return results;
}

std::vector<absl::StatusOr<std::vector<RankFinding>>> FlyAll(const Hosts& hosts) {
  return OnAll(hosts, [](CommunicatorOptions options) { return RunPreflight(std::move(options)); });
}

std::vector<RankFinding> Of(const std::vector<RankFinding>& findings, const std::string& check) {
  std::vector<RankFinding> found;
  for (const RankFinding& finding : findings) {
    if (finding.check == check) found.push_back(finding);
  }
  return found;
}

std::vector<std::string> Texts(const std::vector<RankFinding>& findings) {
  std::vector<std::string> texts;
  for (const RankFinding& finding : findings) {
    // How long round trips take differs from run to run, but not from rank to rank.
    texts.push_back(absl::StrCat(static_cast<int>(finding.severity), finding.check, finding.object,
                                 finding.observed, finding.fix));
  }
  return texts;
}

TEST(PreflightTest, EveryPairAsksOverEveryRailAndAllFindTheSame) {
  const auto all = FlyAll(Hosts());
  for (const auto& findings : all) {
    ASSERT_TRUE(findings.ok()) << findings.status();
    EXPECT_EQ(Texts(*findings), Texts(*all[0]));
    for (const RankFinding& finding : *findings) EXPECT_NE(finding.severity, Severity::kFail);
    int rails = 0;
    for (const RankFinding& ping : Of(*findings, "ping")) {
      if (ping.severity != Severity::kOk) continue;  // a busy machine is slow at times
      EXPECT_EQ(ping.rail->rail, rails++);
      EXPECT_THAT(ping.ranks, ElementsAre(0, 1, 2));
      EXPECT_THAT(ping.observed, HasSubstr("(median of 3 pairs; slowest: "));
    }
    EXPECT_EQ(rails, kRails);
    const auto ranks_of = [&](const char* check) {
      size_t ranks = 0;
      for (const RankFinding& finding : Of(*findings, check)) {
        EXPECT_EQ(finding.severity, Severity::kOk) << finding.observed;
        ranks += finding.ranks.size();
      }
      return ranks;
    };
    for (const char* check : {"port", "rate", "mtu", "gid", "device_node", "counters"}) {
      EXPECT_EQ(ranks_of(check), kWorld * kRails) << check;
    }
    EXPECT_THAT(Of(*findings, "gid")[0].observed,
                "RoCE v2 over IPv4 at index 3: 10.0.0.1, 10.0.0.2, 10.0.0.3");
    EXPECT_THAT(Of(*findings, "transport"), SizeIs(1));
  }
}

// Where a job would end with the reason, there are findings.
TEST(PreflightTest, WhatIsRequiredAndMissingFails) {
  Hosts hosts;
  for (std::vector<int>& listed : hosts.listed) listed.clear();
  const auto all = OnAll(hosts, [](CommunicatorOptions options) {
    options.setup.settings.require_rdma = true;
    options.setup.settings.fallback = config::Fallback::kFail;
    return RunPreflight(std::move(options));
  });
  for (const auto& findings : all) {
    ASSERT_TRUE(findings.ok()) << findings.status();
    const RankFinding transport = Of(*findings, "transport").at(0);
    EXPECT_EQ(transport.severity, Severity::kFail);
    EXPECT_THAT(transport.observed,
                HasSubstr("TCP instead of RDMA: each of ranks 0-2: it was given no RDMA"));
  }
}

TEST(PreflightTest, OverTcpTheRailsAreInterfaces) {
  const auto all = OnAll(Hosts(), [](CommunicatorOptions options) {
    options.setup.settings.transport = config::TransportChoice::kTcp;
    // Ranks of one pod would share memory.
    options.setup.place = "one";
    return RunPreflight(std::move(options));
  });
  for (const auto& findings : all) {
    ASSERT_TRUE(findings.ok()) << findings.status();
    const std::vector<RankFinding> transports = Of(*findings, "transport");
    ASSERT_THAT(transports, SizeIs(2));
    EXPECT_EQ(transports[0].observed, "tcp");
    EXPECT_THAT(transports[1].observed, HasSubstr("do not apply to rails of TCP"));
    const std::vector<RankFinding> pings = Of(*findings, "ping");
    ASSERT_FALSE(pings.empty());
    EXPECT_EQ(pings[0].object, "rail 0 (lo, tcp): all 3 ranks");
    for (const RankFinding& finding : *findings) EXPECT_NE(finding.severity, Severity::kFail);
  }
}

// What is wrong with rank 1 alone, and what everybody must read.
struct Lack {
  const char* name;
  void (*make)(Hosts& hosts);
  std::vector<std::string> texts;  // the rank and the device are looked for besides
  friend void PrintTo(const Lack& lack, std::ostream* out) { *out << lack.name; }
};

class LackTest : public ::testing::TestWithParam<Lack> {};

void Each(Hosts& hosts, const std::function<void(FakeDevice&)>& change) {
  for (FakeDevice& nic : hosts.nics[1]) change(nic);
}

const auto kLacks = ::testing::Values(
    Lack{"NoUverbs",
         [](Hosts& hosts) { Each(hosts, [](FakeDevice& nic) { nic.name = ""; }); },
         {"device nic1_0", "Check that the pod requests rdma/hca"}},
    Lack{
        "NoPermission",
        [](Hosts& hosts) { Each(hosts, [](FakeDevice& nic) { nic.open_error = EACCES; }); },
        {"device nic1_0", "check that the pod requests rdma/hca and that /dev/infiniband/uverbs*"}},
    Lack{"MemlockTooSmall",
         [](Hosts& hosts) { Each(hosts, [](FakeDevice& nic) { nic.memlock = 64 << 10; }); },
         {"device nic1_0", "set LimitMEMLOCK=infinity"}},
    Lack{"PortDown",
         [](Hosts& hosts) { Each(hosts, [](FakeDevice& nic) { nic.state = IBV_PORT_DOWN; }); },
         {"device nic1_0", "check the cable and that its network interface is up"}},
    Lack{"NoGid",
         [](Hosts& hosts) { Each(hosts, [](FakeDevice& nic) { nic.gids.clear(); }); },
         {"device nic1_0", "give the rail's network interface an IP address"}},
    Lack{"PeerWithoutRdma",
         [](Hosts& hosts) { hosts.listed[1].clear(); },
         {"there is no /run/railhead/rails.json", "request rdma/hca in its pod"}});

INSTANTIATE_TEST_SUITE_P(All, LackTest, kLacks,
                         [](const auto& of) { return std::string(of.param.name); });

TEST_P(LackTest, PreflightFailsOnAllRanksAndNamesTheOne) {
  Hosts hosts;
  GetParam().make(hosts);
  const auto all = FlyAll(hosts);
  for (const auto& findings : all) {
    ASSERT_TRUE(findings.ok()) << findings.status();
    EXPECT_EQ(Texts(*findings), Texts(*all[0]));
    bool named = false;
    for (const RankFinding& finding : *findings) {
      if (finding.severity != Severity::kFail || finding.check != "port") continue;
      EXPECT_THAT(finding.ranks, ElementsAre(1));
      EXPECT_THAT(finding.object, HasSubstr("rank 1 (pod p1)"));
      EXPECT_NE(finding.fix, "");
      named = true;
    }
    EXPECT_TRUE(named);
    const RankFinding transport = Of(*findings, "transport").at(0);
    EXPECT_EQ(transport.severity, Severity::kFail);
    for (const std::string& text : GetParam().texts)
      EXPECT_THAT(transport.observed, HasSubstr(text));
    // Over what is left they ask each other all the same.
    EXPECT_FALSE(Of(*findings, "ping").empty());
  }
}

TEST_P(LackTest, AJobThatRequiresRdmaFailsOnAllRanksWithOneMessage) {
  Hosts hosts;
  GetParam().make(hosts);
  const std::vector<absl::Status> all = OnAll(hosts, [](CommunicatorOptions options) {
    options.setup.settings.require_rdma = true;
    absl::StatusOr<bootstrap::Bootstrap> bootstrap = Join(options);
    if (!bootstrap.ok()) return bootstrap.status();
    return comm::SetUp(*bootstrap, options.setup).status();
  });
  for (const absl::Status& status : all) {
    EXPECT_EQ(status, all[0]);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 (pod p1)"));
    for (const std::string& text : GetParam().texts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  }
}

TEST(StartTest, TheMetricsPageHasWhatThePortsCount) {
  const int port = FreePort();
  const std::vector<std::string> all = OnAll(Hosts(), [port](CommunicatorOptions options) {
    const bool first = options.rendezvous.rank == 0;
    options.setup.settings.job = "train";
    options.setup.settings.metrics_port = first ? port : 0;
    const absl::StatusOr<std::unique_ptr<Communicator>> comm =
        Communicator::Create(std::move(options));
    if (!comm.ok()) return std::string(comm.status().message());
    return first ? railhead::testing::HttpGet(port, "/metrics") : std::string();
  });
  for (const int rail : {0, 1}) {
    EXPECT_THAT(all[0],
                HasSubstr(absl::StrCat("railhead_rail_out_of_sequence_total{job=\"train\",rank="
                                       "\"0\",rail=\"",
                                       rail, "\",device=\"nic0_", rail,
                                       "\",port=\"1\",transport=\"verbs\"} 5\n")));
  }
}

// What only makes it slower is told by the rank that has it, when the job starts.
TEST(StartTest, ARankWhoseRailsDifferSaysSo) {
  Hosts hosts;
  hosts.nics[1][0].mtu = IBV_MTU_1024;
  hosts.trees[1].Write(absl::StrCat("/sys/class/infiniband/", NicName(1, 1), "/ports/1/rate"),
                       "100 Gb/sec (4X EDR)\n");
  using Said = std::pair<int, std::vector<std::string>>;
  const std::vector<Said> all = OnAll(hosts, [](CommunicatorOptions options) -> Said {
    absl::StatusOr<bootstrap::Bootstrap> bootstrap = Join(options);
    if (!bootstrap.ok()) return {-1, {}};
    absl::StatusOr<Fabric> fabric = comm::SetUp(*bootstrap, options.setup);
    if (!fabric.ok()) return {-1, {}};
    std::vector<std::string> warnings;
    for (const std::string& warning : fabric->warnings) {
      // How much may be pinned is this machine's affair.
      if (!absl::StrContains(warning, "memlock")) warnings.push_back(warning);
    }
    return {options.rendezvous.rank, warnings};
  });
  EXPECT_EQ(all[0], Said(0, {}));
  EXPECT_EQ(all[2], Said(2, {}));
  EXPECT_EQ(all[1].first, 1);
  EXPECT_THAT(
      all[1].second,
      ElementsAre(
          AllOf(HasSubstr("rail 0 (nic1_0 port 1, verbs): mtu: 1024 bytes, others have 4096"),
                HasSubstr("the same MTU on all nodes")),
          AllOf(HasSubstr("rail 1 (nic1_1 port 1, verbs): rate: 100 Gb/sec (4X EDR), others "
                          "have 400 Gb/sec (4X NDR)"),
                HasSubstr("cable"))));
}

}  // namespace
}  // namespace railhead::comm
