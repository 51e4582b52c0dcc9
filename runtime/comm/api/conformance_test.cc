// SPDX-License-Identifier: Apache-2.0
//
// Conformance matrix of the C API's collectives (runtime/testing/conformance.h): results are
// compared with plain arithmetic, and bit by bit between ranks.
#include "runtime/testing/conformance.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/shm/segment_server.h"
#include "runtime/testing/play.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

using config::TransportChoice;
using testing::Algorithm;
using testing::Collective;
using testing::CollectiveCase;
using testing::kRight;
using testing::PlannedCase;
using testing::Planner;
using testing::Process;
using testing::RunRanks;
using testing::Size;
using testing::Transport;
using testing::Way;
using testing::World;

// A sanitizer observes one process. With one, ranks are threads, so that it detects races between
// them and leaks, and slow cases are omitted.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
constexpr size_t kMostBytes = size_t{8} << 20U;
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
constexpr size_t kMostBytes = size_t{24} << 20U;
#else
constexpr bool kSanitized = false;
constexpr size_t kMostBytes = SIZE_MAX;
#endif

// Rendezvous of the ranks: a listening port that no other process can get.
struct Meeting {
  net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  int port = net::LocalAddress(listener.get())->port;
};

absl::StatusOr<std::unique_ptr<Communicator>> Join(const World& world, int rank, Meeting& meeting,
                                                   const FakeRails* fake) {
  CommunicatorOptions options;
  options.rendezvous = {rank, world.ranks, "127.0.0.1", meeting.port};
  if (rank == 0) options.listener = std::move(meeting.listener);
  config::Settings& settings = options.setup.settings;
  settings.pod = absl::StrCat("p", rank);
  settings.rails_file = "/nonexistent/rails.json";
  settings.metrics_port = 0;
  settings.timeout = absl::Seconds(100);
  settings.log_level = LogLevel::kError;
  settings.algorithms = world.pins;
  const int place = !world.place_of.empty() ? world.place_of[static_cast<size_t>(rank)]
                    : world.interleaved     ? rank % world.places
                                            : rank / (world.ranks / world.places);
  options.setup.place = absl::StrCat(shm::PlaceOfProcess(), " ", place);
  switch (world.transport) {
    case Transport::kShm:
      settings.transport = TransportChoice::kShm;
      options.setup.place = "the same";
      break;
    case Transport::kTcpRails:
      settings.more_socket_ifnames.assign(static_cast<size_t>(world.rails) - 1, "lo");
      [[fallthrough]];
    case Transport::kTcp:
      settings.socket_ifname = "lo";
      settings.transport = TransportChoice::kTcp;
      break;
    case Transport::kVerbs:
      settings.transport = TransportChoice::kVerbs;
      settings.rails_file = fake->File(rank);
      options.setup.open_rdma_rail = [fake](const fabric::PodRail& rail) {
        return fake->Open(rail);
      };
      break;
    case Transport::kHierarchical:
      break;
  }
  return Communicator::Create(std::move(options));
}

// Returns the results of all ranks.
std::vector<std::string> RunWorld(const World& world) {
  // Once for all processes.
  for (const PlannedCase& planned : world.cases) {
    testing::ValueTable::Of(OperationOf(planned.c, world.ranks));
  }
  std::optional<FakeRails> fake;
  if (world.transport == Transport::kVerbs) fake.emplace(world.ranks, world.rails);
  Meeting meeting;
  const auto body = [&](int rank) -> std::string {
    absl::StatusOr<std::unique_ptr<Communicator>> joined =
        Join(world, rank, meeting, fake.has_value() ? &*fake : nullptr);
    if (!joined.ok()) return std::string(joined.status().message());
    auto comm = std::make_unique<rhComm>();
    comm->communicator = *std::move(joined);
    std::string text = testing::PlayAll(comm.get(), world, rank);
    // After an error, abort: the other ranks must not wait for this one.
    (text.rfind(kRight, 0) == 0 ? rhCommDestroy : rhCommAbort)(comm.release());
    return text;
  };
  // Fake NICs work within one process only.
  if (kSanitized || fake.has_value()) return RunRanks(world.ranks, body);
  std::vector<Process> processes;
  processes.reserve(static_cast<size_t>(world.ranks));
  for (int rank = 0; rank < world.ranks; ++rank) {
    processes.push_back(Process::Fork({}, [&] { return body(rank); }));
  }
  std::vector<std::string> outputs;
  outputs.reserve(processes.size());
  for (Process& process : processes) {
    outputs.push_back(process.Wait(MonotonicNow() + absl::Minutes(10)).output);
  }
  return outputs;
}

class ConformanceTest : public ::testing::TestWithParam<std::tuple<Transport, int>> {};

TEST_P(ConformanceTest, EveryCallIsRightOnAllRanks) {
  const auto& [transport, ranks] = GetParam();
  for (const World& world : Planner(transport, ranks, kMostBytes).Plan()) {
    SCOPED_TRACE(ToString(world));
    const std::vector<std::string> outputs = RunWorld(world);
    EXPECT_EQ(outputs[0].substr(0, std::string(kRight).size()), kRight);
    EXPECT_EQ(outputs, std::vector<std::string>(outputs.size(), outputs[0]));
    if (HasFailure()) return;
  }
}

// RAILHEAD_SEEDS=1000 plays 1000 cases (make soak), some with up to 64 MiB per rank.
TEST(ConformanceSampleTest, WhateverIsCalledWhereverIsRight) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  unsigned seeds = kSanitized ? 10 : 100;
  size_t most = size_t{16} << 20U;
  if (wanted != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(wanted, &seeds)) << "RAILHEAD_SEEDS is a number";
    most = size_t{1} << 30U;
  }
  for (unsigned seed = 0; seed < seeds; ++seed) {
    // Few are as large as that.
    const World world = testing::Sample(seed, seed % 16 == 15 ? most : most / 32);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", ToString(world)));
    const std::vector<std::string> outputs = RunWorld(world);
    EXPECT_EQ(outputs[0].substr(0, std::string(kRight).size()), kRight);
    EXPECT_EQ(outputs, std::vector<std::string>(outputs.size(), outputs[0]));
    if (HasFailure()) return;
  }
}

std::vector<std::tuple<Transport, int>> Cells() {
  std::vector<std::tuple<Transport, int>> cells;
  for (size_t i = 0; i < testing::kTransportNames.size(); ++i) {
    const auto transport = static_cast<Transport>(i);
    for (const int ranks : testing::RankCounts(transport)) cells.emplace_back(transport, ranks);
  }
  return cells;
}

INSTANTIATE_TEST_SUITE_P(Matrix, ConformanceTest, ::testing::ValuesIn(Cells()),
                         [](const auto& cell) {
                           return absl::StrCat(Name(std::get<0>(cell.param)), "_",
                                               std::get<1>(cell.param));
                         });

std::string Combination(Transport transport, Collective collective, const testing::Kind& kind) {
  return absl::StrCat(Name(transport), " ", Name(collective), " type ", kind.type, " op ", kind.op,
                      kind.scaled ? " scaled" : "");
}

// Cases that the matrix must contain: all pairs of properties that can affect each other, and some
// triples.
std::set<std::string> Required() {
  std::set<std::string> required;
  for (const auto& [transport, ranks] : Cells()) {
    const Planner planner(transport, ranks, kMostBytes);
    for (const Collective collective : testing::kAllCollectives) {
      const std::string what = absl::StrCat(Name(transport), " ", Name(collective));
      const std::vector<Way> ways = planner.WaysOf(collective);
      for (size_t variant = 0; variant < ways.size(); ++variant) {
        const Way& way = ways[variant];
        const std::string how = absl::StrCat(what, " ", Name(way.algorithm), " ", Name(way.column));
        required.insert(absl::StrCat(how, " apart"));
        if (testing::HasInPlace(collective, false)) required.insert(absl::StrCat(how, " in place"));
        for (const Size& size : planner.SizesOf(way, variant)) {
          required.insert(absl::StrCat(how, " of ", size.name, " among ", ranks));
        }
      }
      if (collective == Collective::kBarrier) continue;
      for (const testing::Kind& kind : testing::KindsOf(collective)) {
        required.insert(Combination(transport, collective, kind));
      }
      if (testing::HasUneven(collective)) required.insert(absl::StrCat(what, "v"));
    }
  }
  return required;
}

TEST(ConformancePlanTest, HasEveryPair) {
  std::set<std::string> missing = Required();
  EXPECT_GT(missing.size(), 3000U);
  size_t cases = 0;
  for (const auto& [transport, ranks] : Cells()) {
    for (const World& world : Planner(transport, ranks, kMostBytes).Plan()) {
      for (const PlannedCase& planned : world.cases) {
        const CollectiveCase& c = planned.c;
        const std::string what = absl::StrCat(Name(transport), " ", Name(c.collective));
        const std::string how =
            absl::StrCat(what, " ", Name(planned.way.algorithm), " ", Name(planned.way.column));
        missing.erase(absl::StrCat(how, c.in_place ? " in place" : " apart"));
        missing.erase(absl::StrCat(how, " of ", planned.size, " among ", ranks));
        missing.erase(Combination(transport, c.collective, {c.type, c.op, c.scaled}));
        if (c.uneven) missing.erase(absl::StrCat(what, "v"));
        ++cases;
      }
    }
  }
  EXPECT_EQ(missing, std::set<std::string>());
  RecordProperty("cases", static_cast<int>(cases));
}

}  // namespace
}  // namespace railhead::comm
