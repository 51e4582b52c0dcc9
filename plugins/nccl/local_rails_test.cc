// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/local_rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/nccl/listener.h"
#include "runtime/comm/api/fake_rails_for_test.h"

namespace railhead::nccl {
namespace {

using config::Fallback;
using config::TransportChoice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

comm::CommunicatorOptions Options(Fallback fallback, TransportChoice transport) {
  comm::CommunicatorOptions options;
  options.setup.settings.socket_ifname = "lo";
  options.setup.settings.transport = transport;
  options.setup.settings.fallback = fallback;
  options.setup.settings.metrics_port = 0;
  options.setup.settings.rails_file = "/no/such/rails.json";
  return options;
}

// Options of a process with RDMA rails of fake NICs.
comm::CommunicatorOptions WithRails(comm::FakeRails& fake, int end, Fallback fallback) {
  comm::CommunicatorOptions options = Options(fallback, TransportChoice::kAuto);
  options.setup.settings.rails_file = fake.File(end);
  options.setup.open_rdma_rail = [&fake](const fabric::PodRail& rail) { return fake.Open(rail); };
  return options;
}

constexpr Fallback kPolicies[] = {Fallback::kAllow, Fallback::kWarn, Fallback::kFail};

TEST(LocalRailsTest, AProcessWithoutRdmaMayUseTcp) {
  for (const Fallback fallback : kPolicies) {
    const auto rails = LocalRails::Open(Options(fallback, TransportChoice::kAuto)).value();
    EXPECT_THAT(rails->Of(RailKind::kVerbs), IsEmpty());
    EXPECT_THAT(rails->Of(RailKind::kTcp), SizeIs(1));
    EXPECT_EQ(rails->degraded_reason(), "");
  }
}

TEST(LocalRailsTest, ThePolicyDecidesWhatHappensWithoutTheRdmaThatWasWanted) {
  for (const Fallback fallback : kPolicies) {
    const auto rails = LocalRails::Open(Options(fallback, TransportChoice::kVerbs));
    if (fallback == Fallback::kFail) {
      EXPECT_TRUE(absl::IsFailedPrecondition(rails.status())) << rails.status();
      EXPECT_THAT(std::string(rails.status().message()),
                  HasSubstr("TCP instead of RDMA: this process: it was given no RDMA device"));
      continue;
    }
    ASSERT_TRUE(rails.ok()) << rails.status();
    EXPECT_THAT((*rails)->Of(RailKind::kTcp), SizeIs(1));
    EXPECT_THAT((*rails)->degraded_reason(), StartsWith("TCP instead of RDMA: "));
  }
}

TEST(LocalRailsTest, ARailThatDoesNotOpenIsLessThanItWasGiven) {
  comm::FakeRails fake(/*ranks=*/1, /*rails=*/3);
  for (const Fallback fallback : kPolicies) {
    comm::CommunicatorOptions options = WithRails(fake, 0, fallback);
    options.setup.open_rdma_rail =
        [&fake](const fabric::PodRail& rail) -> absl::StatusOr<std::unique_ptr<comm::RdmaRail>> {
      if (rail.rail == 1) return absl::UnavailableError("its port is down");
      return fake.Open(rail);
    };
    const auto rails = LocalRails::Open(std::move(options));
    if (fallback == Fallback::kFail) {
      EXPECT_THAT(std::string(rails.status().message()), HasSubstr("RDMA on 2 of 3 rails"));
      continue;
    }
    ASSERT_TRUE(rails.ok()) << rails.status();
    // It may open later.
    EXPECT_THAT((*rails)->Of(RailKind::kVerbs), SizeIs(3));
    EXPECT_THAT((*rails)->degraded_reason(), HasSubstr("its port is down"));
  }
}

// A receiver whose process has only TCP, and a sender with RDMA: a handle may come from a pod that
// was given less.
TEST(LocalRailsTest, ThePolicyHoldsForEachConnection) {
  comm::FakeRails fake(/*ranks=*/1);
  for (const Fallback fallback : kPolicies) {
    const auto own = LocalRails::Open(WithRails(fake, 0, fallback)).value();
    EXPECT_THAT(own->Of(RailKind::kTcp), SizeIs(fallback == Fallback::kFail ? 0 : 1));
    const auto other = LocalRails::Open(Options(Fallback::kAllow, TransportChoice::kAuto)).value();
    const auto listener = Listener::Start(*other).value();
    const auto connection = Connect(*own, listener->handle());
    if (fallback == Fallback::kFail) {
      EXPECT_THAT(std::string(connection.status().message()), HasSubstr("no rail in common"));
      continue;
    }
    ASSERT_TRUE(connection.ok()) << connection.status();
    EXPECT_EQ(own->degraded_reason(), "TCP instead of RDMA with 127.0.0.1: no RDMA rail in common");
  }
}

TEST(LocalRailsTest, RdmaCannotBeEncrypted) {
  comm::FakeRails fake(/*ranks=*/1);
  comm::CommunicatorOptions options = WithRails(fake, 0, Fallback::kWarn);
  options.setup.settings.frames = config::FrameWish::kEncrypted;
  EXPECT_THAT(std::string(LocalRails::Open(std::move(options)).status().message()),
              HasSubstr("set RAILHEAD_TRANSPORT=tcp"));
}

}  // namespace
}  // namespace railhead::nccl
