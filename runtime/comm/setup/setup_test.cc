// SPDX-License-Identifier: Apache-2.0
//
// The way from ranks that have met to ranks that are connected, with RDMA rails whose luck the
// tests choose. What works of them are TCP connections underneath.
#include "runtime/comm/setup/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/comm/setup/agreement.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/relay.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::comm {
namespace {

using config::TransportChoice;
using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What goes wrong with one rail of one rank.
struct Luck {
  absl::Status open;     // the device
  absl::Status pin;      // the memory of its connections
  absl::Status connect;  // a connection
  bool mute = false;     // nothing ever crosses it
  preflight::PortFacts port = {};
};

// A link that does not get connected.
class StuckLink final : public transport::Link {
 public:
  explicit StuckLink(absl::StatusOr<bool> reconnects) : reconnects_(std::move(reconnects)) {}
  size_t max_payload() const override { return 4096; }
  absl::StatusOr<bool> TrySend(const transport::FrameHeader&,
                               absl::Span<const std::byte>) override {
    return reconnects_.status();
  }
  Report Poll(transport::FrameSink) override { return {reconnects_.status()}; }
  void Drop(absl::string_view /*why*/) override {}
  bool connected() const override { return false; }
  absl::StatusOr<bool> Reconnect(absl::Time /*now*/) override { return reconnects_; }
  bool Flushed() const override { return true; }
  Load load() const override { return {}; }
  absl::StatusOr<bool> WakeBy(int /*epoll*/, void* /*tag*/) override { return false; }
  void Answer(absl::Time /*now*/) override {}
  absl::Status Arm(transport::Wake /*wake*/) override { return absl::OkStatus(); }
  const transport::LinkStats& stats() const override { return stats_; }

 private:
  absl::StatusOr<bool> reconnects_;
  transport::LinkStats stats_;
};

class TestRail final : public RdmaRail {
 public:
  explicit TestRail(Luck luck) : luck_(std::move(luck)) {}
  std::string Describe() const override { return "made up"; }
  preflight::PortFacts Facts() const override { return luck_.port; }
  absl::Status CanPin(size_t /*links*/) const override { return luck_.pin; }
  absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) override {
    if (!luck_.connect.ok()) return std::make_unique<StuckLink>(luck_.connect);
    if (luck_.mute) return std::make_unique<StuckLink>(false);
    return transport::OpenTcpLink(std::move(acceptor), std::move(peer_acceptor), peer);
  }
  std::shared_ptr<const void> Know(absl::Span<const std::byte> /*memory*/,
                                   std::shared_ptr<const void> /*owner*/,
                                   const Logger& /*log*/) override {
    return nullptr;
  }
  transport::verbs::KnownGpu KnowGpu(absl::Span<const std::byte> /*memory*/,
                                     const device::Memory& /*gpu*/,
                                     const Logger& /*log*/) override {
    return {};
  }
  bool AccessesItself() const override { return false; }
  bool TakesDmaBufs() const override { return false; }
  absl::StatusOr<std::unique_ptr<transport::SharedMemory>> Share(absl::Span<std::byte> /*memory*/,
                                                                 const device::DmaBuf* /*buffer*/,
                                                                 bool /*on_device*/,
                                                                 const Logger& /*log*/) override {
    return absl::UnimplementedError("made up");
  }

 private:
  Luck luck_;
};

class SetUpTest : public ::testing::Test {
 protected:
  SetUpTest() {
    if (::mkdtemp(base_.data()) == nullptr) std::abort();
  }
  ~SetUpTest() override { std::filesystem::remove_all(base_); }

  // By rank and rail.
  std::map<int, std::map<int, Luck>> luck;
  std::map<int, config::Settings> settings;
  std::map<int, std::string> places;
  std::map<int, std::vector<int>>
      rails;                        // what a rank's rails file lists; without an entry, no file
  std::atomic<bool> mended{false};  // devices that did not open do now
  std::string secret;               // of the job
  std::map<int, int> master_ports;  // of ranks that do not reach rank 0's port itself

  // Sets a world up and returns what each rank got.
  std::vector<absl::StatusOr<Fabric>> Run(int world) { return Run(world, FreePort()); }
  std::vector<absl::StatusOr<Fabric>> Run(int world, int port) {
    return RunRanks(world, [&](int rank) { return RunRank(rank, world, port); });
  }

 private:
  absl::StatusOr<Fabric> RunRank(int rank, int world, int port) {
    bootstrap::JoinOptions join;
    join.rank = rank;
    join.world_size = world;
    join.host = "127.0.0.1";
    const auto own_port = master_ports.find(rank);
    join.port = own_port == master_ports.end() ? port : own_port->second;
    join.name = absl::StrCat("pod p", rank);
    join.secret = bootstrap::Secret(secret, "");
    join.deadline = MonotonicNow() + absl::Seconds(20);
    absl::StatusOr<bootstrap::Bootstrap> bootstrap = bootstrap::Bootstrap::Join(std::move(join));
    if (!bootstrap.ok()) return bootstrap.status();
    SetupOptions options;
    const auto own = settings.find(rank);
    if (own != settings.end()) options.settings = own->second;
    options.root = Root(rank);
    const auto place = places.find(rank);
    if (place != places.end()) options.place = place->second;
    options.open_rdma_rail =
        [this, rank](const fabric::PodRail& rail) -> absl::StatusOr<std::unique_ptr<RdmaRail>> {
      const Luck its = LuckOf(rank, rail.rail);
      if (!its.open.ok() && !mended) return its.open;
      return std::make_unique<TestRail>(its);
    };
    return comm::SetUp(*bootstrap, options);
  }

  Luck LuckOf(int rank, int rail) const {
    const auto of_rank = luck.find(rank);
    if (of_rank == luck.end()) return {};
    const auto of_rail = of_rank->second.find(rail);
    return of_rail == of_rank->second.end() ? Luck{} : of_rail->second;
  }

  // A folder of the rank's own in place of "/", with its rails file in it.
  std::string Root(int rank) const {
    const std::filesystem::path root = std::filesystem::path(base_) / absl::StrCat(rank);
    std::filesystem::remove_all(root);
    const auto listed = rails.find(rank);
    if (listed == rails.end()) return root;
    fabric::PodRails pod_rails;
    pod_rails.node = "n";
    for (const int rail : listed->second) {
      fabric::PodRail entry;
      entry.rail = rail;
      entry.device = absl::StrCat("rxe", rail);
      pod_rails.rails.push_back(entry);
    }
    std::filesystem::create_directories(root / "run/railhead");
    std::ofstream(root / "run/railhead/rails.json") << fabric::ToJson(pod_rails);
    return root;
  }

  std::string base_ = absl::StrCat(::testing::TempDir(), "/railhead-setup-XXXXXX");
};

TEST_F(SetUpTest, AllRailsWork) {
  for (const int world : {1, 2, 3, 4, 5}) {
    for (int rank = 0; rank < world; ++rank) rails[rank] = {1, 0};
    for (const absl::StatusOr<Fabric>& fabric : Run(world)) {
      ASSERT_TRUE(fabric.ok()) << fabric.status();
      EXPECT_TRUE(fabric->decision.verbs);
      EXPECT_EQ(fabric->decision.degraded_reason, "");
      ASSERT_EQ(fabric->rails.size(), 2U);
      EXPECT_EQ(fabric->rails[0].rail, 0);
      EXPECT_EQ(fabric->rails[0].device, "rxe0");
      EXPECT_EQ(fabric->rails[0].transport, "verbs");
      EXPECT_EQ(fabric->peers.size(), static_cast<size_t>(world - 1));
    }
  }
}

TEST_F(SetUpTest, RailsThatAreNotListedCountAsNotGiven) {
  for (int rank = 0; rank < 3; ++rank) {
    rails[rank] = {0, 1, 2, 3};
    settings[rank].rails = {1, 3};
    settings[rank].fallback = config::Fallback::kFail;
  }
  luck[1][2].open = absl::UnavailableError("down");
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(fabric->decision.rails, (std::vector<int>{1, 3}));
    EXPECT_EQ(fabric->decision.degraded_reason, "");
    EXPECT_EQ(fabric->facts.rails.size(), 2U);
  }
}

TEST_F(SetUpTest, AListedRailThatIsNotGivenIsNamed) {
  for (int rank = 0; rank < 2; ++rank) {
    rails[rank] = {0, 1};
    settings[rank].rails = {0, 5};
  }
  rails[0].push_back(5);
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(fabric->decision.rails, std::vector<int>{0});
    EXPECT_EQ(fabric->decision.degraded_reason,
              "RDMA on 1 of 2 rails: rank 1 (pod p1): rail 5 cannot be used: RAILHEAD_RAILS lists "
              "it, but /run/railhead/rails.json does not contain it");
  }
}

TEST_F(SetUpTest, WithoutARailsFileThereIsTcpAndNothingIsDegraded) {
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_FALSE(fabric->decision.verbs);
    EXPECT_EQ(fabric->decision.degraded_reason, "");
    ASSERT_EQ(fabric->rails.size(), 1U);
    EXPECT_EQ(fabric->rails[0].device, "lo");
    EXPECT_EQ(fabric->rails[0].transport, "tcp");
    EXPECT_THAT(fabric->trouble, HasSubstr("it was given no RDMA device"));
  }
}

TEST_F(SetUpTest, ARankWithoutDevicesMakesAllUseTcpWithTheReason) {
  rails = {{0, {0, 1}}, {2, {0, 1}}};
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_FALSE(fabric->decision.verbs);
    EXPECT_THAT(
        fabric->decision.degraded_reason,
        AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("rdma/hca"), Not(HasSubstr("rank 0"))));
  }
}

struct Mishap {
  const char* name;
  Luck luck;
  const char* text;
  // So that the test's name is readable.
  friend void PrintTo(const Mishap& mishap, std::ostream* out) { *out << mishap.name; }
};

// Of TCP; RDMA rails have a shorter one, by which mishaps are found out.
constexpr absl::Duration kTimeout = absl::Seconds(20);

class MishapTest : public SetUpTest, public ::testing::WithParamInterface<Mishap> {};

// Whenever it is found out that a rail does not work between two ranks, these go on with the other
// one, and all others use both.
TEST_P(MishapTest, OfOneRailLeavesTheOther) {
  rails = {{0, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}};
  for (int rank = 0; rank < 3; ++rank) settings[rank].timeout = kTimeout;
  luck[1][0] = GetParam().luck;
  const std::vector<absl::StatusOr<Fabric>> fabrics = Run(3);
  for (const absl::StatusOr<Fabric>& fabric : fabrics) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_TRUE(fabric->decision.verbs);
    EXPECT_EQ(fabric->decision.rails, (std::vector<int>{0, 1}));
    EXPECT_THAT(fabric->decision.degraded_reason,
                AllOf(HasSubstr("1 of 2 rails"), HasSubstr("rank 1 (pod p1): rail 0 (rxe0)"),
                      HasSubstr(GetParam().text)));
    EXPECT_EQ(fabric->decision, fabrics[0]->decision);
    for (const auto& [rank, peer] : fabric->peers) EXPECT_TRUE(peer->rail_health(1).up);
  }
  EXPECT_TRUE(fabrics[0]->peers.at(2)->rail_health(0).up);
  EXPECT_TRUE(fabrics[2]->peers.at(0)->rail_health(0).up);
}

// Different rails of two ranks, and of all pairs one that does not connect; then all are mended.
TEST_F(SetUpTest, RailsThatAreDownAtTheStartJoinWhenTheyAreUp) {
  constexpr int kWorld = 3;
  for (int rank = 0; rank < kWorld; ++rank) {
    rails[rank] = {0, 1, 2};
    settings[rank].timeout = kTimeout;
    settings[rank].log_level = LogLevel::kError;
  }
  luck[1][0].open = absl::UnavailableError("port 1 is DOWN");
  luck[2][1].open = absl::NotFoundError("no uverbs1");
  const std::vector<absl::StatusOr<Fabric>> fabrics = Run(kWorld);
  const auto all = [&](auto is) {
    for (const absl::StatusOr<Fabric>& fabric : fabrics) {
      for (const auto& [rank, peer] : fabric->peers) {
        for (size_t rail = 0; rail < peer->rail_count(); ++rail) {
          if (!is(*peer, rail)) return false;
        }
      }
    }
    return true;
  };
  for (size_t rank = 0; rank < fabrics.size(); ++rank) {
    ASSERT_TRUE(fabrics[rank].ok()) << fabrics[rank].status();
    EXPECT_EQ(fabrics[rank]->decision.rails, (std::vector<int>{0, 1, 2}));
    for (const auto& [other, peer] : fabrics[rank]->peers) {
      const bool with_1 = rank == 1 || other == 1;
      const bool with_2 = rank == 2 || other == 2;
      EXPECT_EQ(peer->rail_health(0).up, !with_1);
      EXPECT_EQ(peer->rail_health(1).up, !with_2);
      EXPECT_TRUE(peer->rail_health(2).up);
    }
  }
  mended = true;
  const absl::Time deadline = MonotonicNow() + absl::Seconds(120);
  while (!all([](rails::Peer& peer, size_t rail) { return peer.rail_health(rail).up.load(); })) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_TRUE(all([](rails::Peer& peer, size_t) { return peer.Poll(MonotonicNow()).ok(); }));
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_P(MishapTest, OfAllRailsLeavesTcp) {
  rails = {{0, {0, 1}}, {1, {0, 1}}};
  for (int rank = 0; rank < 2; ++rank) settings[rank].timeout = kTimeout;
  luck[1][0] = GetParam().luck;
  luck[1][1] = GetParam().luck;
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_FALSE(fabric->decision.verbs);
    EXPECT_THAT(fabric->decision.degraded_reason,
                AllOf(HasSubstr("TCP instead of RDMA"), HasSubstr(GetParam().text)));
    EXPECT_EQ(fabric->rails[0].transport, "tcp");
    EXPECT_EQ(fabric->peers.size(), 1U);
  }
}

TEST_P(MishapTest, OfAllRailsFailsEverybodyWhereRdmaIsRequired) {
  rails = {{0, {0}}, {1, {0}}, {2, {0}}};
  for (int rank = 0; rank < 3; ++rank) settings[rank].timeout = kTimeout;
  settings[2].require_rdma = true;
  luck[1][0] = GetParam().luck;
  const std::vector<absl::StatusOr<Fabric>> fabrics = Run(3);
  for (const absl::StatusOr<Fabric>& fabric : fabrics) {
    EXPECT_EQ(fabric.status(), fabrics[0].status());
    EXPECT_THAT(
        std::string(fabric.status().message()),
        AllOf(HasSubstr("RAILHEAD_REQUIRE_RDMA=1 on rank 2"), HasSubstr("rank 1 (pod p1): "),
              HasSubstr("rail 0 (rxe0"), HasSubstr(GetParam().text)));
  }
}

// The strictest rank's policy counts, whenever it is found out that a rail does not work.
TEST_P(MishapTest, OfOneRailFailsEverybodyWhereLessIsRefused) {
  rails = {{0, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}};
  for (int rank = 0; rank < 3; ++rank) settings[rank].timeout = kTimeout;
  settings[0].fallback = config::Fallback::kAllow;
  settings[2].fallback = config::Fallback::kFail;
  luck[1][0] = GetParam().luck;
  const std::vector<absl::StatusOr<Fabric>> fabrics = Run(3);
  for (const absl::StatusOr<Fabric>& fabric : fabrics) {
    EXPECT_EQ(fabric.status(), fabrics[0].status());
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("RAILHEAD_FALLBACK=fail on rank 2"), HasSubstr("1 of 2 rails"),
                      HasSubstr("rank 1 (pod p1): rail 0 (rxe0)"), HasSubstr(GetParam().text)));
  }
}

// One rank is enough; and nobody goes on without what it asks for.
TEST_F(SetUpTest, TheStrictestWishForAuthenticationCounts) {
  settings[1].frames = config::FrameWish::kSigned;
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(fabric->decision.protection, transport::FrameProtection::kSigned);
  }
  // The keys would cross the network for all to read.
  settings[1].frames = config::FrameWish::kEncrypted;
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    EXPECT_EQ(fabric.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 1 (pod p1): RAILHEAD_AUTH=encrypt"),
                      HasSubstr("RAILHEAD_SECRET_FILE")));
  }
  secret = "sixteen bytes at least";
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_GT(fabric->decision.protection, transport::FrameProtection::kSigned);
  }
  secret.clear();
  settings[1].frames = config::FrameWish::kSigned;
  settings[2].require_secret = true;
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    EXPECT_EQ(fabric.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 2 (pod p2): RAILHEAD_AUTH=require"),
                      HasSubstr("RAILHEAD_SECRET_FILE")));
  }
  secret = "sixteen bytes at least";
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) EXPECT_TRUE(fabric.ok()) << fabric.status();
  secret.clear();
  for (const absl::StatusOr<Fabric>& fabric : Run(1)) EXPECT_TRUE(fabric.ok()) << fabric.status();
}

// Between rank 1 and rank 0's port, and changes one byte of what the ranks agree on: what rank 1
// reports that it wants of frames, or what rank 0 has decided for them.
class Tamperer {
 public:
  enum class Target { kNothing, kReport, kDecision };

  Tamperer(Target target, int port)
      : target_(target),
        relay_(
            net::SocketAddress{*net::IpAddress::Parse("127.0.0.1"), static_cast<uint16_t>(port)}) {
    relay_.change = [this](bool from_caller, std::string& bytes) { Change(from_caller, bytes); };
    thread_ = std::thread([this] {
      while (!stops_.load()) {
        relay_.Pump();
        absl::SleepFor(absl::Milliseconds(1));
      }
    });
  }
  ~Tamperer() { Stop(); }

  // Ends all connections. Returns the number of bytes that were changed.
  int Stop() {
    stops_.store(true);
    if (thread_.joinable()) thread_.join();
    return changed_;
  }
  int port() const { return relay_.port(); }

 private:
  void Change(bool from_caller, std::string& bytes) {
    bootstrap::FrameReader& reader = from_caller ? from_rank_ : from_master_;
    *reader.buffer() += bytes;
    bytes.clear();
    while (true) {
      absl::StatusOr<std::optional<bootstrap::Frame>> frame = reader.Next();
      if (!frame.ok() || !frame->has_value()) return;
      std::string payload = Changed(**frame);
      for (size_t i = 0; i < payload.size(); ++i) changed_ += payload[i] != (**frame).payload[i];
      bytes += bootstrap::EncodeFrame((*frame)->kind, payload);
    }
  }

  std::string Changed(const bootstrap::Frame& frame) const {
    if (target_ == Target::kReport && frame.kind == bootstrap::FrameKind::kGather) {
      bootstrap::Parts parts = *bootstrap::ParseParts(frame.payload, 1);
      absl::StatusOr<Statement> statement = ParseStatement(parts.parts[0]);
      // The rendezvous has an exchange of its own.
      if (!statement.ok() || statement->report.empty()) return frame.payload;
      RankReport report = *ParseReport(statement->report);
      report.frames = config::FrameWish::kPlain;
      statement->report = Encode(report);
      parts.parts[0] = Encode(*statement);
      return bootstrap::EncodeParts(parts);
    }
    if (target_ == Target::kDecision && frame.kind == bootstrap::FrameKind::kAll) {
      bootstrap::Answers answers = *bootstrap::ParseAnswers(frame.payload, 1);
      if (answers.for_all.empty()) return frame.payload;
      absl::StatusOr<Agreement> agreement = ParseAgreement(answers.for_all, 2);
      if (!agreement.ok()) return frame.payload;
      agreement->decision.protection = transport::FrameProtection::kNone;
      answers.for_all = Encode(*agreement);
      return bootstrap::EncodeAnswers(answers);
    }
    return frame.payload;
  }

  Target target_;
  railhead::testing::Relay relay_;
  bootstrap::FrameReader from_rank_{bootstrap::kAllLimit};
  bootstrap::FrameReader from_master_{bootstrap::kAllLimit};
  int changed_ = 0;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

// No rank gets less than it wants because of one byte; ranks that find it out fail all.
TEST_F(SetUpTest, AChangedByteOfTheRendezvousTakesNoProtectionAway) {
  using config::FrameWish;
  using Target = Tamperer::Target;
  secret = "sixteen bytes at least";
  int refused = 0;
  for (const Target target : {Target::kNothing, Target::kReport, Target::kDecision}) {
    for (const FrameWish zero : {FrameWish::kPlain, FrameWish::kSigned, FrameWish::kEncrypted}) {
      for (const FrameWish one : {FrameWish::kSigned, FrameWish::kEncrypted}) {
        const std::string scene = absl::StrCat(static_cast<int>(target), ", wishes ",
                                               static_cast<int>(zero), static_cast<int>(one));
        settings[0].frames = zero;
        settings[1].frames = one;
        const int port = FreePort();
        Tamperer tamperer(target, port);
        master_ports[1] = tamperer.port();
        const std::vector<absl::StatusOr<Fabric>> fabrics = Run(2, port);
        EXPECT_EQ(tamperer.Stop(), target == Target::kNothing ? 0 : 1) << scene;
        // Where rank 0 wants as much, a report that wants less changes nothing.
        if (target == Target::kNothing || (target == Target::kReport && zero >= one)) {
          for (const absl::StatusOr<Fabric>& fabric : fabrics) {
            ASSERT_TRUE(fabric.ok()) << scene << fabric.status();
            EXPECT_GE(static_cast<int>(fabric->decision.protection),
                      static_cast<int>(std::max(zero, one)))
                << scene;
          }
          continue;
        }
        ++refused;
        for (const absl::StatusOr<Fabric>& fabric : fabrics) {
          EXPECT_EQ(fabric.status().code(), absl::StatusCode::kFailedPrecondition) << scene;
          EXPECT_THAT(std::string(fabric.status().message()),
                      AllOf(HasSubstr("rank 1 (pod p1): RAILHEAD_AUTH="),
                            HasSubstr("but rank 0 decided on TCP with")))
              << scene;
        }
      }
    }
  }
  EXPECT_EQ(refused, 9);
}

INSTANTIATE_TEST_SUITE_P(
    All, MishapTest,
    ::testing::Values(
        Mishap{"device", {absl::NotFoundError("no uverbs0"), {}, {}, false}, "no uverbs0"},
        Mishap{"memory",
               {{}, absl::ResourceExhaustedError("RLIMIT_MEMLOCK is 64 KiB"), {}, false},
               "RLIMIT_MEMLOCK is 64 KiB"},
        Mishap{"connection", {{}, {}, absl::UnavailableError("no route"), false}, "no route"},
        Mishap{"mute", {{}, {}, {}, true}, "no connection to rank"}),
    [](const auto& mishap) { return std::string(mishap.param.name); });

// Also when all have to decide again, since a rail turns out not to work.
TEST_F(SetUpTest, EachPlaceGetsItsMemory) {
  places = {{0, "a"}, {1, "b"}, {2, "a"}, {3, "b"}};
  for (int rank = 0; rank < 4; ++rank) rails[rank] = {0, 1};
  for (int rank = 0; rank < 4; ++rank) settings[rank].timeout = kTimeout;
  luck[2][0].connect = absl::UnavailableError("no route");
  std::vector<absl::StatusOr<Fabric>> fabrics = Run(4);
  for (size_t rank = 0; rank < fabrics.size(); ++rank) {
    ASSERT_TRUE(fabrics[rank].ok()) << fabrics[rank].status();
    EXPECT_EQ(fabrics[rank]->decision.rails, (std::vector<int>{0, 1}));
    EXPECT_EQ(fabrics[rank]->peers.size(), 3U);
    ASSERT_TRUE(fabrics[rank]->segment.has_value());
    if (rank < 2) *fabrics[rank]->segment->data() = static_cast<std::byte>(rank + 1);
  }
  for (size_t rank = 0; rank < fabrics.size(); ++rank) {
    EXPECT_EQ(*fabrics[rank]->segment->data(), static_cast<std::byte>(rank % 2 + 1));
  }
}

TEST_F(SetUpTest, ARankWithoutDevicesFailsEverybodyWhereLessIsRefused) {
  rails = {{0, {0, 1}}, {2, {0, 1}}};
  settings[1].fallback = config::Fallback::kFail;
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    EXPECT_EQ(fabric.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("RAILHEAD_FALLBACK=fail on rank 1"), HasSubstr("rank 1 (pod p1): "),
                      HasSubstr("rdma/hca")));
  }
}

TEST_F(SetUpTest, LessThatIsAllowedIsStillTold) {
  rails = {{0, {0, 1}}, {1, {0, 1}}};
  for (int rank = 0; rank < 2; ++rank) settings[rank].fallback = config::Fallback::kAllow;
  luck[1][0].open = absl::NotFoundError("no uverbs0");
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(fabric->decision.rails, (std::vector<int>{0, 1}));
    EXPECT_EQ(fabric->decision.fallback, config::Fallback::kAllow);
    EXPECT_THAT(fabric->decision.degraded_reason, HasSubstr("no uverbs0"));
  }
}

TEST_F(SetUpTest, RanksOfDifferentClassesFailTogether) {
  rails = {{0, {0}}, {1, {0}}};
  settings[1].ib_traffic_class = 106;
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 1 (pod p1) has RAILHEAD_IB_TC='106'"), HasSubstr("rank 0")));
  }
}

TEST_F(SetUpTest, AWrongSettingFailsEverybodyByName) {
  rails = {{0, {0}}, {1, {0}}};
  settings[1].socket_ifname = "nosuch0";
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("RAILHEAD_SOCKET_IFNAME"),
                      HasSubstr("nosuch0")));
  }
}

TEST_F(SetUpTest, TheInterfaceForTcpCanBeChosen) {
  settings[0].socket_ifname = "lo";
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(fabric->rails[0].device, "lo");
  }
}

TEST_F(SetUpTest, EveryListedInterfaceIsARail) {
  for (int rank = 0; rank < 3; ++rank) {
    settings[rank].socket_ifname = "lo";
    settings[rank].more_socket_ifnames = {"lo", "lo"};
  }
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    ASSERT_EQ(fabric->rails.size(), 3U);
    for (int i = 0; i < 3; ++i) {
      const rails::RailName& name = fabric->rails[static_cast<size_t>(i)];
      EXPECT_EQ(rails::ToString(name), absl::StrCat("rail ", i, " (lo, tcp)"));
    }
    for (const auto& [rank, peer] : fabric->peers) EXPECT_EQ(peer->rail_count(), 3U);
  }
}

TEST_F(SetUpTest, ARankWithFewerTcpRailsFailsEverybodyByName) {
  for (int rank = 0; rank < 3; ++rank) {
    settings[rank].socket_ifname = "lo";
    if (rank != 1) settings[rank].more_socket_ifnames = {"lo"};
  }
  for (const absl::StatusOr<Fabric>& fabric : Run(3)) {
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 1 (pod p1) has 1 TCP rail, but the others have 2"),
                      HasSubstr("RAILHEAD_SOCKET_IFNAME"), Not(HasSubstr("rank 2"))));
  }
}

TEST_F(SetUpTest, AnUnknownInterfaceAmongSeveralIsNamed) {
  settings[1].socket_ifname = "lo";
  settings[1].more_socket_ifnames = {"nosuch1"};
  for (const absl::StatusOr<Fabric>& fabric : Run(2)) {
    EXPECT_THAT(std::string(fabric.status().message()),
                AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("nosuch1")));
  }
}

TEST(NeighboursTest, EveryPairIsKnownToBothSides) {
  for (const int world : {1, 2, 3, 4, 5, 7, 8, 31, 63, 64, 65, 100, 257}) {
    for (const auto of : {Neighbours, RingNeighbours}) {
      for (int rank = 0; rank < world; ++rank) {
        const std::vector<int> mine = of(rank, world);
        EXPECT_EQ(std::set<int>(mine.begin(), mine.end()).size(), mine.size()) << "each once";
        for (const int other : mine) {
          EXPECT_NE(other, rank);
          EXPECT_THAT(of(other, world), ::testing::Contains(rank));
        }
      }
    }
  }
  EXPECT_EQ(Neighbours(5, 64).size(), 63U);
}

TEST(NeighboursTest, FewInLargeWorldsAndAllThatTheAlgorithmsNeed) {
  for (const int world : {65, 100, 128, 1000, 4096}) {
    for (int rank = 0; rank < world; rank += 17) {
      const std::vector<int> neighbours = Neighbours(rank, world);
      EXPECT_LE(neighbours.size(), 2 * 12);
      for (int distance = 1; distance < world; distance *= 2) {
        EXPECT_THAT(neighbours, ::testing::Contains((rank + distance) % world));
        EXPECT_THAT(neighbours, ::testing::Contains((rank + world - distance) % world));
        if ((rank ^ distance) < world) {
          EXPECT_THAT(neighbours, ::testing::Contains(rank ^ distance));
        }
      }
    }
  }
}

}  // namespace
}  // namespace railhead::comm
