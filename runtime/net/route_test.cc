// SPDX-License-Identifier: Apache-2.0
//
// Routes and interfaces that every machine has; tests/rails has others.
#include "runtime/net/route.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>

#include <string>

#include "runtime/base/now.h"
#include "runtime/net/by_interface.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::net {
namespace {

IpAddress Of(const char* text) { return *IpAddress::Parse(text); }

TEST(RouteTest, TheLoopbackLeadsHere) {
  for (const auto& [from, to] : {std::pair("127.0.0.1", "127.0.0.1"), {"127.0.0.1", "127.0.0.2"}}) {
    const absl::StatusOr<Route> route = FindRoute(Of(from), Of(to));
    ASSERT_TRUE(route.ok()) << route.status();
    EXPECT_TRUE(route->local);
    EXPECT_FALSE(route->gateway);
    EXPECT_EQ(route->interface, static_cast<int>(::if_nametoindex("lo")));
  }
}

TEST(RouteTest, WithoutARouteOrAnInterfaceItIsAnError) {
  const int lo = static_cast<int>(::if_nametoindex("lo"));
  // Nothing but this machine is behind the loopback.
  EXPECT_FALSE(FindRoute(Of("127.0.0.1"), Of("192.0.2.1"), lo).ok());
  EXPECT_FALSE(FindRoute(Of("127.0.0.1"), Of("::1")).ok());
  EXPECT_FALSE(ReadInterface("no-such-one").ok());
  EXPECT_FALSE(ReadInterface(1 << 30).ok());
}

TEST(RouteTest, TheLoopbackIsReadByNameAndByLabel) {
  for (const char* name : {"lo", "lo:1"}) {
    const absl::StatusOr<Interface> lo = ReadInterface(name);
    ASSERT_TRUE(lo.ok()) << lo.status();
    EXPECT_EQ(lo->name, "lo");
    EXPECT_TRUE(lo->loopback && lo->running);
  }
}

TEST(RouteTest, TheCounterGrowsWithWhatIsSent) {
  const Fd from(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const uint64_t before = ReadInterface("lo")->sent_bytes;
  sockaddr_storage to;
  const socklen_t length = Of("127.0.0.1").ToSockaddr(9, &to);
  const std::string packet(1000, 'x');
  ASSERT_EQ(::sendto(from.get(), packet.data(), packet.size(), MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(&to), length),
            static_cast<ssize_t>(packet.size()));
  EXPECT_GE(ReadInterface("lo")->sent_bytes, before + packet.size());
}

TEST(ByInterfaceTest, OfAPairTheBoundOneGetsWhatComesInByItsInterface) {
  for (const char* text : {"127.0.0.1", "::1"}) {
    SCOPED_TRACE(text);
    const IpAddress loopback = Of(text);
    const absl::StatusOr<ListenerPair> pair = ListenByInterface(loopback, "lo");
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_TRUE(IsBoundToInterface(pair->bound.get()));
    EXPECT_FALSE(IsBoundToInterface(pair->other.get()));
    const uint16_t port = LocalAddress(pair->bound.get())->port;
    EXPECT_EQ(LocalAddress(pair->other.get())->port, port);
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    const absl::StatusOr<Fd> dialed = Dial(loopback, port, loopback, deadline);
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    Fd accepted;
    while (!accepted.valid() && MonotonicNow() < deadline) {
      accepted = *Accept(pair->bound.get());
      ASSERT_FALSE(Accept(pair->other.get())->valid());
    }
    ASSERT_TRUE(accepted.valid());
    EXPECT_TRUE(IsBoundToInterface(accepted.get()));
    EXPECT_EQ(ArrivalInterface(accepted.get()), static_cast<int>(::if_nametoindex("lo")));
    EXPECT_EQ(RemoteAddress(accepted.get())->port, LocalAddress(dialed->get())->port);
  }
}

TEST(ByInterfaceTest, TheInterfaceOfAnArrivalIsKnownInBothFamilies) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  for (const char* text : {"127.0.0.1", "::1"}) {
    const IpAddress address = Of(text);
    const absl::StatusOr<Fd> listener = Listen(address, 0);
    ASSERT_TRUE(listener.ok()) << listener.status();
    const absl::StatusOr<Fd> dialed =
        Dial(address, LocalAddress(listener->get())->port, address, deadline);
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    ASSERT_TRUE(WaitReadable(listener->get(), deadline).ok());
    const Fd accepted = *Accept(listener->get());
    EXPECT_FALSE(IsBoundToInterface(accepted.get()));
    EXPECT_EQ(ArrivalInterface(accepted.get()), static_cast<int>(::if_nametoindex("lo"))) << text;
  }
}

TEST(ByInterfaceTest, AnInterfaceThatIsNotThereIsAnError) {
  const IpAddress loopback = Of("127.0.0.1");
  EXPECT_FALSE(ListenByInterface(loopback, "no-such-one").ok());
  EXPECT_FALSE(StartDial(loopback, 9, loopback, "no-such-one").ok());
}

}  // namespace
}  // namespace railhead::net
