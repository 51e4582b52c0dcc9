// SPDX-License-Identifier: Apache-2.0
//
// The comparison of counters, and rails whose interfaces have none; tests/rails has real ones.
#include "runtime/comm/setup/wire_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/connect/rail_interface.h"
#include "runtime/transport/connect/rail_listener.h"

namespace railhead::comm {
namespace {

TEST(WireCheckTest, AnInterfaceCarriesWhatItHasCounted) {
  constexpr uint64_t kMiB = uint64_t{1} << 20U;
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const uint64_t sent : {kMiB / 16, kMiB, 1000 * kMiB, kMost}) {
    EXPECT_TRUE(Carries(sent, sent)) << sent;
    EXPECT_TRUE(Carries(sent, kMost)) << sent;  // others use it, too
    EXPECT_FALSE(Carries(sent, 0)) << sent;
    EXPECT_FALSE(Carries(sent, sent / 10)) << sent;
  }
  // Few bytes prove nothing.
  for (const uint64_t sent : {0, 1, 1000}) EXPECT_TRUE(Carries(sent, 0)) << sent;
}

std::shared_ptr<transport::Acceptor> AcceptorAt(const char* text, bool named) {
  const net::IpAddress address = *net::IpAddress::Parse(text);
  std::unique_ptr<transport::RailInterface> interface;
  if (named) {
    interface = std::make_unique<transport::RailInterface>(address, "lo", "rail 0 (lo, tcp)",
                                                           railhead::Logger());
  }
  return *transport::Acceptor::Open(*transport::RailListener::Open(address, std::move(interface)),
                                    1);
}

TEST(WireCheckTest, TheLoopbackHasNoWire) {
  for (const bool named : {true, false}) {
    for (const bool partner_known : {true, false}) {
      const auto own = AcceptorAt("127.0.0.1", named);
      const auto peer = AcceptorAt("127.0.0.2", named);
      const rails::RailName rail = {0, "lo", 0, "tcp"};
      WireCheck wires({{rail, own, partner_known ? peer->Address() : ""}});
      rails::RailTotals totals = {rail};
      totals.transmit_bytes = uint64_t{1} << 40U;
      EXPECT_TRUE(wires.Check({&totals, 1}, absl::InfiniteDuration()).empty());
      EXPECT_EQ(wires.Trouble() + wires.TroubleOf(0) + wires.LeavesBy(0), "");
    }
  }
}

}  // namespace
}  // namespace railhead::comm
