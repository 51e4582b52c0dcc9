// SPDX-License-Identifier: Apache-2.0
//
// Rails on the loopback, which has no wire; tests/rails has rails with NICs.
#include "runtime/transport/connect/rail_interface.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

TEST(RailInterfaceTest, DevicesWithoutAWireAreNoNics) {
  net::Interface interface;
  for (const char* kind : {"", "veth", "vlan", "bond", "macvlan", "ipvlan", "bridge"}) {
    interface.kind = kind;
    EXPECT_TRUE(IsNic(interface)) << kind;
  }
  for (const char* kind : {"dummy", "vrf"}) {
    interface.kind = kind;
    EXPECT_FALSE(IsNic(interface)) << kind;
  }
  interface = {};
  interface.loopback = true;
  EXPECT_FALSE(IsNic(interface));
}

TEST(RailInterfaceTest, TheLoopbackAndUnknownAddressesAreNotBound) {
  for (const char* text : {"127.0.0.1", "::1", "192.0.2.1"}) {
    SCOPED_TRACE(text);
    const bool known = text != std::string("192.0.2.1");
    const net::IpAddress address = *net::IpAddress::Parse(text);
    RailInterface interface(address, known ? "lo" : "nosuch0", "rail 0", Logger());
    EXPECT_FALSE(interface.is_nic() || interface.binds_listener());
    EXPECT_EQ(interface.ForDial(address, MonotonicNow()), "");
    if (!known) continue;
    const net::Fd listener = *net::Listen(address, 0);
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    const absl::StatusOr<net::Fd> dialed =
        net::Dial(address, net::LocalAddress(listener.get())->port, address, deadline);
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    ASSERT_TRUE(net::WaitReadable(listener.get(), deadline).ok());
    const net::Fd accepted = *net::Accept(listener.get());
    EXPECT_TRUE(interface.Keep(accepted.get(), MonotonicNow()));
    for (const net::Fd* end : {&*dialed, &accepted}) interface.Connected(end->get(), address);
    EXPECT_EQ(interface.leaves_by() + interface.trouble(), "");
  }
}

}  // namespace
}  // namespace railhead::transport
