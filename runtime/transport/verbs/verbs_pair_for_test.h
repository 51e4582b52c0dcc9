// SPDX-License-Identifier: Apache-2.0
//
// Two verbs links connected through fake NICs, for tests.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_PAIR_FOR_TEST_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_PAIR_FOR_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/testing/acceptors.h"
#include "runtime/transport/verbs/fake_verbs.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::transport::verbs {

inline FakeDevice RoceDevice(const std::string& name, const std::string& address) {
  FakeDevice device;
  device.name = name;
  device.gids = {FakeGid(0, "fe80::" + name.substr(name.size() - 1) + "1", IBV_GID_TYPE_ROCE_V2),
                 FakeGid(1, address, IBV_GID_TYPE_ROCE_V2)};
  return device;
}

inline FakeDevice IwarpDevice(const std::string& name, const std::string& address) {
  FakeDevice device;
  device.name = name;
  device.transport = IBV_TRANSPORT_IWARP;
  device.addresses = {*net::IpAddress::Parse(address)};
  net::MacAddress mac = {2, 0};
  const std::string bytes = device.addresses.front().Bytes();
  std::copy_n(bytes.end() - 4, 4, mac.begin() + 2);
  device.gids = {FakeMacGid(mac)};
  return device;
}

// Network under test.
enum class Network { kRoce, kIwarp };

inline FakeDevice DeviceOn(Network network, const std::string& name, const std::string& address) {
  return network == Network::kRoce ? RoceDevice(name, address) : IwarpDevice(name, address);
}

inline std::string NetworkName(const ::testing::TestParamInfo<Network>& network) {
  return network.param == Network::kRoce ? "Roce" : "Iwarp";
}

// Network and number of queue pairs per connection.
struct Way {
  Network network = Network::kRoce;
  uint8_t qps = 1;
};
inline constexpr std::array<Way, 4> kEveryWay = {
    {{Network::kRoce, 1}, {Network::kRoce, 2}, {Network::kRoce, 4}, {Network::kIwarp, 1}}};
inline constexpr std::array<Way, 3> kRoceWays = {
    {{Network::kRoce, 1}, {Network::kRoce, 2}, {Network::kRoce, 4}}};

inline std::string WayName(const ::testing::TestParamInfo<Way>& way) {
  return absl::StrCat(way.param.network == Network::kRoce ? "Roce" : "Iwarp",
                      way.param.qps == 1 ? "" : absl::StrCat("Qps", way.param.qps));
}

inline fabric::PodRail RailOf(const std::string& device, int rail = 0) {
  fabric::PodRail pod_rail;
  pod_rail.rail = rail;
  pod_rail.device = device;
  pod_rail.port = 1;
  return pod_rail;
}

inline absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenFake(const std::shared_ptr<FakeVerbs>& fake,
                                                             const std::string& device,
                                                             const VerbsSettings& settings = {}) {
  return OpenVerbsDevice(RailOf(device), settings, fake, [raw = fake.get()] { return raw->Now(); });
}

inline std::shared_ptr<Acceptor> OpenAcceptor() { return railhead::testing::OpenAcceptor(2); }

// One side: device, link, and received frames.
struct Side {
  VerbsSettings settings;
  std::unique_ptr<VerbsDevice> device;
  std::shared_ptr<Acceptor> acceptor;
  std::unique_ptr<Link> link;
  std::vector<std::pair<FrameHeader, std::string>> received;
  bool accept = true;
  uint64_t unacknowledged = 0;  // at the last Poll

  // Polls once into `received`; defers frames if !accept.
  absl::StatusOr<bool> Poll() {
    Link::Report report =
        link->Poll([&](const FrameHeader& header, absl::Span<const std::byte> payload) {
          if (!accept) return false;
          const auto* const text = reinterpret_cast<const char*>(payload.data());
          received.emplace_back(header, header.placed ? "" : std::string(text, payload.size()));
          return true;
        });
    unacknowledged = report.unacknowledged;
    return std::move(report.moved);
  }
  absl::StatusOr<bool> Send(uint64_t transfer, uint64_t offset, const std::string& bytes) {
    return link->TrySend(
        {transfer, offset},
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  }
};

// Polls connected links and advances the connections of others, until `done` or a permanent error,
// which it returns. Real sockets take real time, though not much; seconds of the fabric's clock
// take tens of thousands of rounds.
struct Worker {
  Link* link;
  std::function<absl::StatusOr<bool>()> poll;
};
inline absl::Status WorkUntil(FakeVerbs& fake, const std::vector<Worker>& workers,
                              absl::FunctionRef<bool()> done) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(120);
  while (!done()) {
    for (const Worker& worker : workers) {
      const absl::StatusOr<bool> worked =
          worker.link->connected() ? worker.poll() : worker.link->Reconnect(fake.Now());
      const bool may_pass = worked.ok() || absl::IsUnavailable(worked.status()) ||
                            absl::IsDeadlineExceeded(worked.status());
      if (!may_pass) return worked.status();
    }
    if (MonotonicNow() >= deadline) return absl::DeadlineExceededError("it is not done");
    fake.AdvanceTime(absl::Microseconds(100));
  }
  return absl::OkStatus();
}

// Connects two links of one fabric; defers all frames meanwhile.
inline absl::Status ConnectLinks(FakeVerbs& fake, Link& a, Link& b) {
  const auto idle = [] { return false; };
  return WorkUntil(fake, {{&a, idle}, {&b, idle}}, [&] { return a.connected() && b.connected(); });
}

class VerbsPairTest : public ::testing::Test {
 protected:
  virtual Network network() const { return Network::kRoce; }
  virtual uint8_t qps() const { return 1; }
  FakeDevice Device(const std::string& name, const std::string& address) const {
    return DeviceOn(network(), name, address);
  }

  void SetUp() override {
    Make({Device("fake0", "10.0.0.1"), Device("fake1", "10.0.0.2")});
    a_.settings.qps_per_rail = b_.settings.qps_per_rail = qps();
  }

  void TearDown() override {
    for (Side* side : {&a_, &b_}) *side = Side();
    // Helper threads of connection setup may still run.
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    while (fake_->open_objects() > 0 && MonotonicNow() < deadline)
      absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(fake_->violations(), std::vector<std::string>());
    EXPECT_EQ(fake_->open_objects(), 0u);
  }

  void Make(std::vector<FakeDevice> devices) {
    fake_ = std::make_shared<FakeVerbs>(std::move(devices));
  }

  void OpenDevice(Side& side, const std::string& device) {
    absl::StatusOr<std::unique_ptr<VerbsDevice>> opened = OpenFake(fake_, device, side.settings);
    ASSERT_TRUE(opened.ok()) << opened.status();
    side.device = *std::move(opened);
    side.acceptor = OpenAcceptor();
  }

  // Opens links without connections.
  void OpenBoth() {
    OpenDevice(a_, "fake0");
    OpenDevice(b_, "fake1");
    a_.link = *OpenVerbsLink(*a_.device, a_.acceptor, b_.acceptor->Address(), "rank 1");
    b_.link = *OpenVerbsLink(*b_.device, b_.acceptor, a_.acceptor->Address(), "rank 0");
  }

  // Runs both sides until `done` or a permanent error, which it returns.
  absl::Status WorkUntil(absl::FunctionRef<bool()> done) {
    return railhead::transport::verbs::WorkUntil(*fake_,
                                                 {{a_.link.get(), [this] { return a_.Poll(); }},
                                                  {b_.link.get(), [this] { return b_.Poll(); }}},
                                                 done);
  }

  bool BothUp() const { return a_.link->connected() && b_.link->connected(); }

  void ConnectBoth() {
    OpenBoth();
    const absl::Status connected = WorkUntil([this] { return BothUp(); });
    ASSERT_TRUE(connected.ok()) << connected;
    PollUntilQuiet();
  }

  // Returns why they cannot connect.
  absl::Status ConnectError() {
    OpenBoth();
    return WorkUntil([this] { return BothUp(); });
  }

  // Polls both until neither moves.
  void PollUntilQuiet() {
    for (int quiet = 0; quiet < 2;) {
      const absl::StatusOr<bool> a = a_.Poll();
      const absl::StatusOr<bool> b = b_.Poll();
      ASSERT_TRUE(a.ok()) << a.status();
      ASSERT_TRUE(b.ok()) << b.status();
      quiet = *a || *b ? 0 : quiet + 1;
    }
  }

  std::shared_ptr<FakeVerbs> fake_;
  Side a_;
  Side b_;
};

// Runs in each of kEveryWay or kRoceWays.
class EveryNetworkTest : public VerbsPairTest, public ::testing::WithParamInterface<Way> {
 protected:
  Network network() const override { return GetParam().network; }
  uint8_t qps() const override { return GetParam().qps; }
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_PAIR_FOR_TEST_H_
