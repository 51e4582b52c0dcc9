// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/now.h"
#include "runtime/net/address.h"
#include "runtime/net/socket.h"
#include "runtime/testing/processes.h"

namespace railhead::net {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, TextAndBytesRoundTrip) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "::1", "fe80::1", "2001:db8::7"}) {
    const absl::StatusOr<IpAddress> address = IpAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
    EXPECT_EQ(*IpAddress::FromBytes(address->Bytes()), *address);
    sockaddr_storage storage;
    address->ToSockaddr(80, &storage);
    EXPECT_EQ(*IpAddress::FromSockaddr(reinterpret_cast<sockaddr*>(&storage)), *address);
  }
}

TEST(AddressTest, MappedIpv4IsIpv4) {
  EXPECT_EQ(IpAddress::Parse("::ffff:10.0.0.1")->ToString(), "10.0.0.1");
}

TEST(AddressTest, WhatIsNoAddressIsRefused) {
  for (const char* text : {"", "10.0.0", "localhost", "1.2.3.4.5", "::g"}) {
    EXPECT_FALSE(IpAddress::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(IpAddress::FromBytes("12345").ok());
  EXPECT_FALSE(IpAddress::FromBytes("").ok());
}

TEST(AddressTest, HostPortBracketsIpv6) {
  EXPECT_EQ(HostPort(*IpAddress::Parse("10.0.0.1"), 80), "10.0.0.1:80");
  EXPECT_EQ(HostPort(*IpAddress::Parse("::1"), 80), "[::1]:80");
}

TEST(AddressTest, TheLoopbackInterfaceIsFoundByNameAndByAddress) {
  const absl::StatusOr<IpAddress> address = AddressOfInterface("lo");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->ToString(), "127.0.0.1");
  EXPECT_EQ(InterfaceOfAddress(*address), "lo");
  EXPECT_EQ(InterfaceOfAddress(*IpAddress::Parse("192.0.2.1")), "");
}

TEST(AddressTest, TheStateOfAnInterfaceIsFound) {
  const InterfaceState loopback = FindInterface("lo");
  EXPECT_TRUE(loopback.exists);
  EXPECT_TRUE(loopback.up);
  EXPECT_THAT(loopback.addresses, ::testing::Contains(*IpAddress::Parse("127.0.0.1")));
  EXPECT_FALSE(FindInterface("nosuch0").exists);
}

TEST(AddressTest, AnUnknownInterfaceListsTheOthers) {
  EXPECT_THAT(std::string(AddressOfInterface("nosuch0").status().message()), HasSubstr("lo"));
}

TEST(AddressTest, AddressesOfAnEthernetAddress) {
  const std::vector<IpAddress> loopback = AddressesOfMac({0, 0, 0, 0, 0, 0});
  EXPECT_THAT(loopback, ::testing::Contains(*IpAddress::Parse("127.0.0.1")));
  EXPECT_TRUE(std::is_partitioned(loopback.begin(), loopback.end(),
                                  [](const IpAddress& address) { return address.is_v4(); }));
  EXPECT_TRUE(AddressesOfMac({2, 0xde, 0xad, 0xbe, 0xef, 1}).empty());
}

TEST(SocketTest, ListensOnBothFamiliesAndCarriesBytes) {
  const Fd listener = *Listen(std::nullopt, 0);
  const uint16_t port = LocalAddress(listener.get())->port;
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  const Fd client =
      *Dial(*IpAddress::Parse("127.0.0.1"), port, IpAddress::Parse("127.0.0.1").value(), deadline);
  ASSERT_TRUE(WaitReadable(listener.get(), deadline).ok());
  const Fd server = *Accept(listener.get());
  ASSERT_TRUE(server.valid());
  EXPECT_EQ(RemoteText(client.get()), HostPort(*IpAddress::Parse("127.0.0.1"), port));

  const std::string sent(3 << 20, 'x');  // more than the kernel's buffers take at once
  std::thread sender([&] { EXPECT_TRUE(SendAll(client.get(), sent, deadline).ok()); });
  std::string got;
  while (got.size() < sent.size() && WaitReadable(server.get(), deadline).ok()) {
    ASSERT_TRUE(*ReceiveSome(server.get(), 1 << 20, &got));
  }
  sender.join();
  EXPECT_EQ(got, sent);
}

TEST(SocketTest, WaitsEndAtTheirDeadlines) {
  const Fd listener = *Listen(*IpAddress::Parse("127.0.0.1"), 0);
  EXPECT_EQ(WaitReadable(listener.get(), MonotonicNow() + absl::Milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(Accept(listener.get())->valid());
  // Nobody reads: the buffers fill, and the send gives up.
  const uint16_t port = LocalAddress(listener.get())->port;
  const Fd client =
      *Dial(*IpAddress::Parse("127.0.0.1"), port, std::nullopt, MonotonicNow() + absl::Seconds(20));
  EXPECT_EQ(
      SendAll(client.get(), std::string(64 << 20, 'x'), MonotonicNow() + absl::Milliseconds(50))
          .code(),
      absl::StatusCode::kDeadlineExceeded);
}

TEST(SocketTest, ARefusedConnectionNamesTheAddress) {
  uint16_t port = 0;
  {
    const Fd listener = *Listen(*IpAddress::Parse("127.0.0.1"), 0);
    port = LocalAddress(listener.get())->port;
  }
  const absl::Status status =
      Dial(*IpAddress::Parse("127.0.0.1"), port, std::nullopt, MonotonicNow() + absl::Seconds(20))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:"));
}

TEST(SocketTest, LocalhostResolves) {
  const absl::StatusOr<std::vector<IpAddress>> addresses =
      Resolve("localhost", MonotonicNow() + absl::Seconds(20));
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_FALSE(addresses->empty());
}

TEST(SocketTest, PollTimeoutNeverWaitsBackwards) {
  EXPECT_EQ(PollTimeout(MonotonicNow() - absl::Seconds(1)), 0);
  EXPECT_GT(PollTimeout(MonotonicNow() + absl::Microseconds(300)), 0);
  EXPECT_GT(PollTimeout(absl::InfiniteFuture()), 1000);
}

TEST(AddressTest, LinkLocalOnesAreTheLastResort) {
  const auto best = [](const std::vector<std::string>& texts) -> std::string {
    std::vector<IpAddress> addresses;
    for (const std::string& text : texts) addresses.push_back(*IpAddress::Parse(text));
    const std::optional<IpAddress> found = MostReachable(addresses);
    return found.has_value() ? found->ToString() : "none";
  };
  // A pod of an IPv6 cluster, whose IPv4 address is for the way out alone.
  EXPECT_EQ(best({"169.254.172.2", "fe80::1", "fd00:10::7"}), "fd00:10::7");
  EXPECT_EQ(best({"fd00:10::7", "10.0.0.1", "10.0.0.2"}), "10.0.0.1");
  EXPECT_EQ(best({"fe80::1", "169.254.172.2"}), "169.254.172.2");
  EXPECT_EQ(best({"fe80::1"}), "fe80::1");
  EXPECT_EQ(best({"169.253.0.1", "10.0.0.1"}), "169.253.0.1");
  EXPECT_EQ(best({"fec0::1", "fe80::1"}), "fec0::1");
  EXPECT_EQ(best({}), "none");
}

TEST(SocketTest, WantOfDescriptorsIsNamed) {
  const absl::Status status = ErrnoError("socket", EMFILE);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(absl::StrCat("EMFILE: this process may have ", DescriptorLimit(), " open")));
}

// What is this process' own fault would go wrong with every connection.
TEST(SocketTest, OnlyTheNetworksErrorsAreTheNetworks) {
  for (const int error : {ECONNRESET, EPIPE, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENETDOWN}) {
    EXPECT_TRUE(IsNetworkError(error)) << error;
  }
  for (const int error : {EFAULT, EBADF, EINVAL, ENOTSOCK}) {
    EXPECT_FALSE(IsNetworkError(error)) << error;
  }
}

// Makes accept4() of this process fail so from now on.
bool RefuseAccept(int error) {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A peer that took the connection and ended it is not one that refuses connections.
TEST(SocketTest, AConnectionThatIsResetAtOnceWasMade) {
  const IpAddress loopback = *IpAddress::Parse("127.0.0.1");
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  const Fd listener = *Listen(loopback, 0);
  const uint16_t port = LocalAddress(listener.get())->port;
  const Fd caller = *StartDial(loopback, port, std::nullopt);
  ASSERT_TRUE(WaitReadable(listener.get(), deadline).ok());
  CloseByReset(*Accept(listener.get()));
  EXPECT_TRUE(WaitReadable(caller.get(), deadline).ok());
  EXPECT_TRUE(FinishDial(caller.get(), loopback, port).ok());
  EXPECT_FALSE(SendAll(caller.get(), "greeting", deadline).ok());
}

TEST(SocketTest, AConnectionThatIsRefusedWasNotMade) {
  const IpAddress loopback = *IpAddress::Parse("127.0.0.1");
  Fd listener = *Listen(loopback, 0);
  const uint16_t port = LocalAddress(listener.get())->port;
  listener.Reset();
  EXPECT_THAT(std::string(Dial(loopback, port, std::nullopt, MonotonicNow() + absl::Seconds(20))
                              .status()
                              .message()),
              HasSubstr("refused"));
}

// What has become of one connection that waited is no error of those behind it.
TEST(SocketTest, AcceptSurvivesACallerThatIsLost) {
  const Fd listener = *Listen(*IpAddress::Parse("127.0.0.1"), 0);
  const auto accepts = [&](int error) {
    return testing::Process::Fork({},
                                  [&]() -> std::string {
                                    if (!RefuseAccept(error)) return "no filter";
                                    const absl::StatusOr<Fd> caller = Accept(listener.get());
                                    if (!caller.ok()) return std::string(caller.status().message());
                                    return caller->valid() ? "a caller" : "goes on";
                                  })
        .Wait(MonotonicNow() + absl::Seconds(20))
        .output;
  };
  for (const int error : {EAGAIN, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET,
                          EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, EPERM}) {
    EXPECT_EQ(accepts(error), "goes on") << error;
  }
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF}) {
    EXPECT_THAT(accepts(error), HasSubstr("accept: ")) << error;
  }
}

TEST(SocketTest, ConnectionsToDifferentPeersMayShareAPort) {
  const IpAddress loopback = *IpAddress::Parse("127.0.0.1");
  const Fd listener = *Listen(loopback, 0);
  const Fd dialed = *StartDial(loopback, LocalAddress(listener.get())->port, loopback);
  int late = 0;
  socklen_t length = sizeof late;
  ASSERT_EQ(::getsockopt(dialed.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late, &length), 0);
  EXPECT_EQ(late, 1);
}

TEST(SocketTest, AWaitEndsWhenItIsOfNoMoreUse) {
  const Fd listener = *Listen(*IpAddress::Parse("127.0.0.1"), 0);
  const absl::Status why = absl::UnavailableError("rank 3 is gone");
  EXPECT_EQ(WaitReadable(listener.get(), absl::InfiniteFuture(), [&] { return why; }), why);
}

}  // namespace
}  // namespace railhead::net
