// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/exporter.h"
#include "runtime/metrics/page.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/testing/http.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::metrics {
namespace {

using collectives::Algorithm;
using collectives::Collective;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Snapshot Example() {
  Snapshot snapshot;
  snapshot.job = "train";
  snapshot.rank = 3;
  snapshot.rejected_connections = 2;
  rails::RailTotals rail;
  rail.name = {0, "rxe0", 1, "verbs"};
  rail.transmit_bytes = 1000;
  rail.receive_bytes = 900;
  rail.retransmits = 5;
  rail.failovers = 4;
  rail.returns = 3;
  rail.strangers = 2;
  rail.weight = 0.25;
  rail.peers = 7;
  rail.lost_peers = 1;
  snapshot.rails.push_back(rail);
  rail.name = {1, "rxe1", 1, "verbs"};
  rail.up = false;
  snapshot.rails.push_back(rail);
  return snapshot;
}

std::string Text(const Snapshot& snapshot) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, ToFamilies({snapshot}));
  return out.str();
}

TEST(PageTest, RailsHaveTheirLabelsAndValues) {
  const std::string text = Text(Example());
  const std::string labels =
      R"({job="train",rank="3",rail="0",device="rxe0",port="1",transport="verbs"} )";
  EXPECT_THAT(text, HasSubstr("railhead_rail_transmit_bytes_total" + labels + "1000\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_receive_bytes_total" + labels + "900\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_retransmits_total" + labels + "5\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_failovers_total" + labels + "4\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_returns_total" + labels + "3\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_rejected_connections_total" + labels + "2\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_state" + labels + "1\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_weight" + labels + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_peers" + labels + "7\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_lost_peers" + labels + "1\n"));
  EXPECT_THAT(text, HasSubstr(R"(rail="1",device="rxe1",port="1",transport="verbs"} 0)"));
  EXPECT_THAT(text, HasSubstr("# TYPE railhead_rail_transmit_bytes_total counter"));
  EXPECT_THAT(text, HasSubstr("# TYPE railhead_rail_state gauge"));
  EXPECT_THAT(
      text,
      HasSubstr("railhead_bootstrap_rejected_connections_total{job=\"train\",rank=\"3\"} 2\n"));
}

TEST(PageTest, TheSourceIsALabelOfAllSeries) {
  Snapshot snapshot = Example();
  snapshot.source = "nccl";
  const std::string text = Text(snapshot);
  EXPECT_THAT(text, HasSubstr("railhead_rail_transmit_bytes_total{job=\"train\",rank=\"3\","
                              "source=\"nccl\",rail=\"0\""));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"3\",rail")));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"3\"}")));
}

Snapshot OfNccl() {
  Snapshot snapshot;
  snapshot.job = "train";
  snapshot.rank = 3;
  snapshot.source = "nccl";
  snapshot.profiler.untimed = {{"all_gather", 4}};
  snapshot.profiler.waits = {{"all_reduce", 3, "send", "network", 1.5}};
  snapshot.profiler.events = {{"call", 7, 6}};
  snapshot.profiler.dropped = 2;
  snapshot.profiler.silent = {{"tensor", 5, 8}, {"", 6, 9}};
  snapshot.profiler.silent_peers = 2;
  return snapshot;
}

TEST(PageTest, AProfilerShowsWaitsEventsAndSilentPeers) {
  const std::string text = Text(OfNccl());
  const std::string rank = R"({job="train",rank="3",source="nccl")";
  EXPECT_THAT(text, HasSubstr("railhead_nccl_untimed_operations_total" + rank +
                              ",collective=\"all_gather\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_wait_seconds_total" + rank +
                              ",collective=\"all_reduce\",size_class=\">4MiB\","
                              "direction=\"send\",cause=\"network\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_silent_peers" + rank + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_silent_peer_seconds" + rank +
                              ",peer=\"5\",comm=\"tensor\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_silent_peer_seconds" + rank + ",peer=\"6\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_profiler_events_total" + rank +
                              ",event=\"call\",change=\"start\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_profiler_events_total" + rank +
                              ",event=\"call\",change=\"stop\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("railhead_nccl_profiler_dropped_events_total" + rank + "} 2\n"));
  EXPECT_THAT(Text(Example()), Not(HasSubstr("railhead_nccl")));
}

TEST(SnapshotTest, CountsOfProfilersAreAdded) {
  Snapshot sum = OfNccl();
  Snapshot other = OfNccl();
  other.profiler.untimed.push_back({"reduce", 1});
  other.profiler.silent[0].seconds = 20;
  Add(other, sum);
  ASSERT_EQ(sum.profiler.untimed.size(), 2U);
  EXPECT_EQ(sum.profiler.untimed[0].operations, 8U);
  EXPECT_EQ(sum.profiler.untimed[1].operations, 1U);
  ASSERT_EQ(sum.profiler.waits.size(), 1U);
  EXPECT_EQ(sum.profiler.waits[0].seconds, 3);
  ASSERT_EQ(sum.profiler.events.size(), 1U);
  EXPECT_EQ(sum.profiler.events[0].started, 14U);
  EXPECT_EQ(sum.profiler.events[0].stopped, 12U);
  EXPECT_EQ(sum.profiler.dropped, 4U);
  ASSERT_EQ(sum.profiler.silent.size(), 2U);
  EXPECT_EQ(sum.profiler.silent[0].seconds, 20);
}

TEST(PageTest, PortsOfRailsShowWhatTheyCountAndNothingElse) {
  EXPECT_THAT(Text(Example()), Not(HasSubstr("railhead_rail_cnp_sent_total")));
  Snapshot snapshot = Example();
  fabric::PortCounters counters;
  counters.transmit_bytes = 4096;
  counters.cnp_sent = 17;
  counters.out_of_sequence = 0;
  counters.transmit_waits = 5;
  snapshot.ports.push_back({snapshot.rails[1].name, counters});
  const std::string text = Text(snapshot);
  const std::string labels =
      R"({job="train",rank="3",rail="1",device="rxe1",port="1",transport="verbs"} )";
  EXPECT_THAT(text, HasSubstr("# TYPE railhead_rail_cnp_sent_total counter\n"));
  EXPECT_THAT(text, HasSubstr("not only this job"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_cnp_sent_total" + labels + "17\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_out_of_sequence_total" + labels + "0\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_transmit_wait_ticks_total" + labels + "5\n"));
  EXPECT_THAT(text, Not(HasSubstr("railhead_rail_retries_total"))) << "not known is not zero";
  EXPECT_THAT(text, Not(HasSubstr("} 4096\n"))) << "the rails count their own bytes";
}

TEST(PageTest, DegradedIsZeroWithoutAReasonAndOneWithIt) {
  Snapshot snapshot = Example();
  EXPECT_THAT(Text(snapshot),
              HasSubstr("railhead_degraded{job=\"train\",rank=\"3\",reason=\"\"} 0\n"));
  snapshot.degraded_reason = "TCP instead of RDMA: rank 1 said \"no\"";
  const std::string text = Text(snapshot);
  EXPECT_THAT(text, HasSubstr(R"(reason="TCP instead of RDMA: rank 1 said \"no\""} 1)"));
  EXPECT_THAT(text, Not(HasSubstr("reason=\"\"")));
}

TEST(PageTest, SaysHowARankStarted) {
  EXPECT_THAT(Text(Example()), Not(HasSubstr("_info")));
  Snapshot snapshot = Example();
  Start& start = snapshot.start.emplace();
  start.world_size = 16;
  start.pod = "train-3";
  start.transport = "verbs";
  start.requested = "auto";
  start.fallback = "warn";
  start.unauthenticated = "no \"key\"";
  start.rails = {{{0, "rxe0", 1, "verbs"}, "Ethernet", "400 Gb/sec (4X NDR)", 4096, "", ""},
                 {{1, "rxe1", 1, "verbs"}, "Ethernet", "", 0, "port 1 is \"DOWN\"", "port"}};
  start.registers = 3000;
  start.least_bytes = 2000;
  std::string text = Text(snapshot);
  EXPECT_THAT(text, HasSubstr("railhead_runtime_info{job=\"train\",rank=\"3\",world_size=\"16\","
                              "transport=\"verbs\",requested=\"auto\",fallback=\"warn\","
                              "trouble=\"\",pod=\"train-3\","
                              "unauthenticated=\"no \\\"key\\\"\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("railhead_rail_info{job=\"train\",rank=\"3\",rail=\"0\","
                              "device=\"rxe0\",port=\"1\",transport=\"verbs\","
                              "link_layer=\"Ethernet\",rate=\"400 Gb/sec (4X NDR)\",mtu=\"4096\","
                              "cause=\"\",trouble=\"\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("mtu=\"0\",cause=\"port\",trouble=\"port 1 is \\\"DOWN\\\"\"} 1\n"));
  const std::string labels = "{job=\"train\",rank=\"3\"} ";
  EXPECT_THAT(text, HasSubstr("railhead_memlock_limit_bytes" + labels + "+Inf\n"));
  EXPECT_THAT(text, HasSubstr("railhead_memlock_wanted_bytes" + labels + "3000\n"));
  EXPECT_THAT(text, HasSubstr("railhead_memlock_least_bytes" + labels + "2000\n"));
  EXPECT_THAT(text, Not(HasSubstr("railhead_shared_memory_bytes"))) << "not known is not zero";
  start.memlock = 8388608;
  start.shared_memory = 67108864;
  text = Text(snapshot);
  EXPECT_THAT(text, HasSubstr("railhead_memlock_limit_bytes" + labels + "8388608\n"));
  EXPECT_THAT(text, HasSubstr("railhead_shared_memory_bytes" + labels + "67108864\n"));
}

TEST(SnapshotTest, OfSeveralCommunicatorsTheFirstSaysHowTheRankStarted) {
  Snapshot sum = Example();
  Snapshot first = Example();
  first.start.emplace().transport = "verbs";
  Snapshot second = Example();
  second.start.emplace().transport = "shm";
  Add(first, sum);
  Add(second, sum);
  EXPECT_EQ(sum.start->transport, "verbs");
}

TEST(PageTest, CollectivesAreCountedByClassOfSize) {
  CollectiveStats stats;
  stats.Record(Collective::kAllReduce, Algorithm::kRing, 8, 70'000);
  stats.Record(Collective::kAllReduce, Algorithm::kRing, 4096, 300'000);
  stats.Record(Collective::kAllReduce, Algorithm::kRing, 4097, 1'000'000);
  stats.Record(Collective::kAllReduce, Algorithm::kRing, uint64_t{8} << 20, 100'000'000'000);
  Snapshot snapshot = Example();
  snapshot.collectives = stats.Read();
  const std::string text = Text(snapshot);
  const auto series = [](const std::string& name, const std::string& size_class,
                         const std::string& more = "") {
    return absl::StrCat("railhead_collective_", name,
                        "{job=\"train\",rank=\"3\",collective=\"all_reduce\",algorithm=\"ring\","
                        "size_class=\"",
                        size_class, "\"", more, "} ");
  };
  EXPECT_THAT(text, HasSubstr(series("operations_total", "<=4KiB") + "2\n"));
  EXPECT_THAT(text, HasSubstr(series("bytes_total", "<=4KiB") + "4104\n"));
  EXPECT_THAT(text, HasSubstr(series("operations_total", "<=256KiB") + "1\n"));
  EXPECT_THAT(text, Not(HasSubstr("<=4MiB"))) << "a size that has not occurred has no series";
  EXPECT_THAT(text, HasSubstr(series("bytes_total", ">4MiB") + "8388608\n"));
  EXPECT_THAT(text, HasSubstr(series("duration_seconds_count", "<=4KiB") + "2\n"));
  EXPECT_THAT(text, HasSubstr(series("duration_seconds_sum", "<=4KiB") + "0.00037"));
  EXPECT_THAT(text,
              HasSubstr(series("duration_seconds_bucket", "<=4KiB", ",le=\"0.0001\"") + "1\n"));
  EXPECT_THAT(text,
              HasSubstr(series("duration_seconds_bucket", "<=4KiB", ",le=\"0.0005\"") + "2\n"));
  EXPECT_THAT(text, HasSubstr(series("duration_seconds_bucket", ">4MiB", ",le=\"30\"") + "0\n"));
  EXPECT_THAT(text, HasSubstr(series("duration_seconds_bucket", ">4MiB", ",le=\"+Inf\"") + "1\n"));
}

TEST(PageTest, ACollectiveAppearsWhenItHasHappened) {
  CollectiveStats stats;
  Snapshot snapshot = Example();
  snapshot.collectives = stats.Read();
  EXPECT_THAT(Text(snapshot), Not(HasSubstr("collective=\"all_gather\"")));
  stats.Record(Collective::kAllGather, Algorithm::kRing, 100, 10'000);
  stats.Record(Collective::kBarrier, Algorithm::kRing, 0, 10'000);
  snapshot.collectives = stats.Read();
  const std::string text = Text(snapshot);
  const std::string rest = R"(,algorithm="ring",size_class="<=4KiB"} )";
  EXPECT_THAT(text, HasSubstr(R"(bytes_total{job="train",rank="3",collective="all_gather")" + rest +
                              "100\n"));
  EXPECT_THAT(text, HasSubstr(R"(operations_total{job="train",rank="3",collective="barrier")" +
                              rest + "1\n"));
  EXPECT_THAT(text, Not(HasSubstr("collective=\"broadcast\"")));
}

// Only there: what else the page shows is the rank's, whatever its communicators are called.
TEST(PageTest, CollectivesOfNamedCommunicatorsAreCountedByName) {
  CollectiveStats stats;
  stats.Record(Collective::kBarrier, Algorithm::kRing, 0, 10'000);
  Snapshot sum = Example();
  sum.collectives = stats.Read();
  for (const char* name : {"tp", "dp", "tp"}) {
    Snapshot other = Example();
    other.collectives = stats.Read();
    other.collectives.front().comm = name;
    Add(other, sum);
  }
  const std::string text = Text(sum);
  const std::string series =
      R"(operations_total{job="train",rank="3",collective="barrier",algorithm="ring",)"
      R"(size_class="<=4KiB")";
  EXPECT_THAT(text, HasSubstr(series + "} 1\n"));
  EXPECT_THAT(text, HasSubstr(series + ",comm=\"tp\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(series + ",comm=\"dp\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("railhead_degraded{job=\"train\",rank=\"3\",reason=\"\"} 0\n"));
}

TEST(ServerTest, ServesWhatIsReadAtEachScrape) {
  Snapshot snapshot = Example();
  std::mutex mutex;
  const auto server = Serve(0, [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return ToFamilies({snapshot});
  });
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(railhead::testing::HttpGet((*server)->port(), "/metrics"), HasSubstr("} 1000\n"));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    snapshot.rails[0].transmit_bytes = 2000;
  }
  EXPECT_THAT(railhead::testing::HttpGet((*server)->port(), "/metrics"), HasSubstr("} 2000\n"));
}

TEST(ServerTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto none = [] { return Families(); };
  const auto first = Serve(0, none);
  ASSERT_TRUE(first.ok());
  const int port = (*first)->port();
  EXPECT_THAT(std::string(Serve(port, none).status().message()),
              HasSubstr(absl::StrCat("RAILHEAD_METRICS_PORT ", port)));
}

TEST(PageTest, HasTheWayToMemoryOfGpusOnceThereIsSome) {
  Snapshot snapshot = Example();
  EXPECT_THAT(Text(snapshot), Not(HasSubstr("railhead_gpudirect")));
  snapshot.gpu_direct = {{snapshot.rails[0].name, fabric::GpuDirectWay::kDmabuf},
                         {snapshot.rails[1].name, fabric::GpuDirectWay::kPeermem}};
  Snapshot other = Example();
  other.gpu_direct = {{snapshot.rails[1].name, fabric::GpuDirectWay::kNone}};
  Add(other, snapshot);
  EXPECT_THAT(Text(snapshot),
              AllOf(HasSubstr("railhead_gpudirect{job=\"train\",rank=\"3\",rail=\"0\",device="
                              "\"rxe0\",port=\"1\",transport=\"verbs\",way=\"dmabuf\"} 1\n"),
                    HasSubstr("rail=\"1\",device=\"rxe1\",port=\"1\",transport=\"verbs\",way="
                              "\"none\"} 1\n"),
                    Not(HasSubstr("peermem\"}"))));
}

TEST(SnapshotTest, CountersAddUpAndStatesAreTheWorse) {
  CollectiveStats stats;
  stats.Record(Collective::kAllReduce, Algorithm::kRing, 8, 70'000);
  Snapshot sum = Example();
  sum.collectives = stats.Read();
  Snapshot other = Example();
  other.rails[0].up = false;
  other.rails[0].weight = 0.125;
  other.rails[1].name = {0, "memory", 0, "shm"};
  stats.Record(Collective::kAllReduce, Algorithm::kRing, 16, 70'000);
  stats.Record(Collective::kBarrier, Algorithm::kRing, 0, 70'000);
  other.collectives = stats.Read();
  other.degraded_reason = "one rail less";
  sum.ports.resize(1);
  sum.ports[0].name = sum.rails[0].name;
  sum.ports[0].counters.retries = 5;
  other.ports.resize(2);
  other.ports[0].name = sum.rails[0].name;
  other.ports[0].counters.retries = 7;
  other.ports[1].name = sum.rails[1].name;
  Add(other, sum);

  ASSERT_EQ(sum.ports.size(), 2U);
  EXPECT_EQ(sum.ports[0].counters.retries, 7U) << "one port, read twice";

  EXPECT_EQ(sum.rejected_connections, 4U);
  EXPECT_EQ(sum.degraded_reason, "one rail less");
  ASSERT_EQ(sum.rails.size(), 3U);
  EXPECT_EQ(sum.rails[0].transmit_bytes, 2000U);
  EXPECT_EQ(sum.rails[0].receive_bytes, 1800U);
  EXPECT_EQ(sum.rails[0].retransmits, 10U);
  EXPECT_EQ(sum.rails[0].failovers, 8U);
  EXPECT_EQ(sum.rails[0].returns, 6U);
  EXPECT_EQ(sum.rails[0].peers, 14);
  EXPECT_EQ(sum.rails[0].lost_peers, 2);
  EXPECT_EQ(sum.rails[0].strangers, 4U);
  EXPECT_EQ(sum.rails[0].weight, 0.125);
  EXPECT_FALSE(sum.rails[0].up);
  EXPECT_EQ(sum.rails[1].transmit_bytes, 1000U);
  EXPECT_EQ(sum.rails[2].name.device, "memory");
  ASSERT_EQ(sum.collectives.size(), 2U);
  EXPECT_EQ(sum.collectives[0].classes[0].operations, 3U);
  EXPECT_EQ(sum.collectives[0].classes[0].bytes, 32U);
  EXPECT_NEAR(sum.collectives[0].classes[0].seconds, 210e-6, 1e-9);

  other.degraded_reason = "another";
  Add(other, sum);
  EXPECT_EQ(sum.degraded_reason, "one rail less; another");
  Add(other, sum);
  EXPECT_EQ(sum.rails[0].transmit_bytes, 4000U);
}

Snapshot ExampleOf(int rank) {
  Snapshot snapshot = Example();
  snapshot.rank = rank;
  snapshot.start.emplace();
  return snapshot;
}

std::string Sent(int rank, int bytes) {
  return absl::StrCat("railhead_rail_transmit_bytes_total{job=\"train\",rank=\"", rank,
                      "\",rail=\"0\",device=\"rxe0\",port=\"1\",transport=\"verbs\"} ", bytes,
                      "\n");
}

TEST(BoardTest, OnePageHasAllOfAProcessAndKeepsWhatIsGone) {
  const auto exporter = Exporter::At(railhead::testing::FreePort(), "p", Logger());
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  auto first = (*exporter)->Register([] { return ExampleOf(3); });
  const int port = first->port();
  EXPECT_EQ(*Exporter::At(port, "p", Logger()), *exporter);
  const auto page = [&] { return railhead::testing::HttpGet(port, "/metrics"); };
  EXPECT_THAT(page(), HasSubstr(Sent(3, 1000)));
  {
    const auto family = (*exporter)->Register([] { return ExampleOf(3); });
    EXPECT_THAT(page(), HasSubstr(Sent(3, 2000)));
  }
  EXPECT_THAT(page(), AllOf(HasSubstr(Sent(3, 2000)), HasSubstr("_info{job=\"train\",rank=\"3\"")));
  first.reset();
  EXPECT_THAT(page(), AllOf(HasSubstr(Sent(3, 2000)), Not(HasSubstr("_info"))));
  // The process is another rank now: it has one at a time, also for what it has counted.
  const auto restarted = (*exporter)->Register([] { return ExampleOf(0); });
  EXPECT_THAT(page(), AllOf(HasSubstr(Sent(0, 3000)), Not(HasSubstr("rank=\"3\""))));
}

// torch's new_group in a loop: the page does not grow without end, and no call is lost.
TEST(BoardTest, NamesOfCommunicatorsAreBounded) {
  const auto exporter = Exporter::At(railhead::testing::FreePort(), "p", Logger());
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const auto stays = (*exporter)->Register([] { return ExampleOf(3); });
  constexpr int kComms = 100;
  std::map<std::string, int> before;  // counts by name
  std::list<std::unique_ptr<Exporter::Registration>> living;
  for (int c = 0; c < kComms; ++c) {
    living.push_back((*exporter)->Register([c] {
      CollectiveStats stats;
      stats.Record(Collective::kBarrier, Algorithm::kRing, 0, 10'000);
      Snapshot snapshot = ExampleOf(3);
      snapshot.collectives = stats.Read();
      snapshot.collectives[0].comm = absl::StrCat("c", c);
      return snapshot;
    }));
    if (c % 3 == 0) living.pop_front();
    if (c % 9 != 0) continue;  // also after the last
    const std::string page = railhead::testing::HttpGet(stays->port(), "/metrics");
    const std::regex series(R"re(operations_total\{[^}]*comm="(\w+)"\} (\d+))re");
    std::map<std::string, int> counts;
    int sum = 0;
    for (auto at = std::sregex_iterator(page.begin(), page.end(), series);
         at != std::sregex_iterator(); ++at) {
      counts[(*at)[1]] = std::stoi((*at)[2]);
      sum += std::stoi((*at)[2]);
    }
    EXPECT_EQ(sum, c + 1);
    EXPECT_LE(counts.size(), 33U);
    for (const auto& [name, count] : before) EXPECT_GE(counts[name], count) << name;
    before = counts;
  }
  EXPECT_EQ(before["others"], kComms - 32);
}

// As torch's data loaders: it is another process, and shares the page of its pod.
TEST(BoardTest, AForkedChildThatHasCommunicatorsIsOnThePage) {
  const int port = railhead::testing::FreePort();
  const auto exporter = Exporter::At(port, "p", Logger());
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const auto own = (*exporter)->Register([] { return ExampleOf(0); });
  const auto child = railhead::testing::Process::Fork({}, [port]() -> std::string {
    const auto childs = Exporter::At(port, "p", Logger());
    if (!childs.ok()) return std::string(childs.status().message());
    const auto registered = (*childs)->Register([] { return ExampleOf(1); });
    ::pause();
    return "";
  });
  const auto page = [&] { return railhead::testing::HttpGet(port, "/metrics"); };
  const absl::Time deadline = MonotonicNow() + absl::Seconds(30);
  while (!absl::StrContains(page(), Sent(1, 1000)) && MonotonicNow() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(page(), AllOf(HasSubstr(Sent(0, 1000)), HasSubstr(Sent(1, 1000))));
}

// Prometheus refuses a page with bytes that are not UTF-8, not only the series.
TEST(PageTest, TextsThatAreNotUtf8AreEscaped) {
  Snapshot snapshot = Example();
  snapshot.job = "caf\xe9";
  snapshot.degraded_reason = "of \xc3";
  snapshot.start.emplace().pod = "p\xff";
  CollectiveStats stats;
  stats.Record(Collective::kBarrier, Algorithm::kRing, 0, 10'000);
  snapshot.collectives = stats.Read();
  snapshot.collectives[0].comm = "torch:\xc3";
  const std::string text = Text(snapshot);
  EXPECT_EQ(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }), 0);
  for (const char* label :
       {R"(job="caf\\xe9")", R"(reason="of \\xc3")", R"(pod="p\\xff")", R"(comm="torch:\\xc3")"}) {
    EXPECT_THAT(text, HasSubstr(label));
  }
}

// A family's communicators come and go; how the rails of those that are gone were is history.
TEST(BoardTest, WhatIsGoneDoesNotHoldStatesDown) {
  const auto exporter = Exporter::At(railhead::testing::FreePort(), "p", Logger());
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  const auto register_rank = [&](double weight, fabric::GpuDirectWay way,
                                 const std::string& degraded) {
    return (*exporter)->Register([weight, way, degraded] {
      Snapshot snapshot = Example();
      snapshot.degraded_reason = degraded;
      for (rails::RailTotals& rail : snapshot.rails) rail.weight = weight;
      snapshot.rails[1].up = true;
      snapshot.gpu_direct = {{snapshot.rails[1].name, way}};
      return snapshot;
    });
  };
  const std::string rail =
      R"({job="train",rank="3",rail="1",device="rxe1",port="1",transport="verbs")";
  const std::unique_ptr<Exporter::Registration> stays =
      register_rank(0.75, fabric::GpuDirectWay::kDmabuf, "");
  const auto page = [&] { return railhead::testing::HttpGet(stays->port(), "/metrics"); };
  {
    const auto goes = register_rank(0.25, fabric::GpuDirectWay::kNone, "one rail less");
    EXPECT_THAT(page(), AllOf(HasSubstr("railhead_rail_weight" + rail + "} 0.25\n"),
                              HasSubstr("railhead_gpudirect" + rail + ",way=\"none\"} 1\n"),
                              HasSubstr("reason=\"one rail less\"} 1\n")));
  }
  EXPECT_THAT(page(),
              AllOf(HasSubstr("railhead_rail_weight" + rail + "} 0.75\n"),
                    HasSubstr("railhead_gpudirect" + rail + ",way=\"dmabuf\"} 1\n"),
                    HasSubstr("railhead_degraded{job=\"train\",rank=\"3\",reason=\"\"} 0\n")));
}

TEST(ServerTest, LeavesTheProgramItsSignals) {
  struct sigaction before = {};
  ::sigaction(SIGPIPE, nullptr, &before);
  struct sigaction own = {};
  own.sa_handler = [](int) {};
  ::sigaction(SIGPIPE, &own, nullptr);
  const auto server = Serve(0, [] { return Families(); });
  ASSERT_TRUE(server.ok()) << server.status();
  struct sigaction after = {};
  ::sigaction(SIGPIPE, &before, &after);
  EXPECT_EQ(after.sa_handler, own.sa_handler);
}

TEST(SizeClassTest, TheBoundsAreInclusive) {
  EXPECT_EQ(SizeClass(0), 0U);
  EXPECT_EQ(SizeClass(4096), 0U);
  EXPECT_EQ(SizeClass(4097), 1U);
  EXPECT_EQ(SizeClass(262144), 1U);
  EXPECT_EQ(SizeClass(262145), 2U);
  EXPECT_EQ(SizeClass(4194304), 2U);
  EXPECT_EQ(SizeClass(4194305), 3U);
}

TEST(CollectiveStatsTest, WhoReadsMeanwhileSeesNothingGoBack) {
  CollectiveStats stats;
  std::thread recorder([&stats] {
    for (int i = 0; i < 40000; ++i) {
      stats.Record(Collective::kAllReduce, Algorithm::kRing, 8, 1000 * (i % 200));
    }
  });
  uint64_t seen = 0;
  while (seen < 40000) {
    const std::vector<KindCounts> kinds = stats.Read();
    if (kinds.empty()) continue;
    EXPECT_GE(kinds[0].classes[0].operations, seen);
    seen = kinds[0].classes[0].operations;
  }
  recorder.join();
  const CollectiveCounts counts = stats.Read().at(0).classes[0];
  EXPECT_EQ(counts.operations, 40000U);
  EXPECT_EQ(counts.bytes, 320000U);
  uint64_t in_buckets = 0;
  for (const uint64_t bucket : counts.buckets) in_buckets += bucket;
  EXPECT_EQ(in_buckets, 40000U);
}

}  // namespace
}  // namespace railhead::metrics
