// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"
#include "runtime/transport/tcp/tcp_link.h"

namespace railhead::transport {
namespace {

using railhead::testing::DialStranger;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return absl::Now() + absl::Seconds(seconds); }

const net::IpAddress& Loopback() {
  static const net::IpAddress loopback = *net::IpAddress::Parse("127.0.0.1");
  return loopback;
}

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

struct Pair {
  std::unique_ptr<Link> a;
  std::unique_ptr<Link> b;
};

Pair Connected() {
  std::unique_ptr<Endpoint> a = *OpenTcpEndpoint(Loopback(), "rank 1");
  std::unique_ptr<Endpoint> b = *OpenTcpEndpoint(Loopback(), "rank 0");
  Pair pair;
  std::thread other([&] { pair.b = *b->Connect(a->Address(), In(20)); });
  pair.a = *a->Connect(b->Address(), In(20));
  other.join();
  return pair;
}

// A link whose other side is a bare socket of the test.
struct HalfPair {
  std::unique_ptr<Link> link;
  net::Fd raw;
};

HalfPair HalfConnected() {
  const net::Fd listener = *net::Listen(Loopback(), 0);
  HalfPair pair;
  pair.raw = DialStranger(net::LocalAddress(listener.get())->port);
  EXPECT_TRUE(net::WaitReadable(listener.get(), In(20)).ok());
  pair.link = *TcpLink::Create(*net::Accept(listener.get()), "test");
  return pair;
}

absl::StatusOr<bool> Drop(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return true; });
}

// Polls until the link reports an error.
absl::Status ErrorOf(Link& link) {
  const absl::Time deadline = In(20);
  while (absl::Now() < deadline) {
    if (const absl::StatusOr<bool> moved = Drop(link); !moved.ok()) return moved.status();
  }
  return absl::OkStatus();
}

TEST(TcpTest, FramesArriveWholeInOrderBothWays) {
  const Pair pair = Connected();
  std::mt19937 random(5);
  struct Sent {
    FrameHeader header;
    std::string payload;
  };
  std::deque<Sent> to_b;
  std::deque<Sent> to_a;
  uint64_t bytes_to_b = 0;
  int frames = 0;
  int refusals = 0;
  const auto receive = [&](Link& link, std::deque<Sent>& expected) {
    const absl::StatusOr<bool> polled =
        link.Poll([&](const FrameHeader& header, absl::Span<const std::byte> payload) {
          if (random() % 4 == 0) {
            ++refusals;
            return false;  // must come again, the same
          }
          EXPECT_FALSE(expected.empty());
          EXPECT_EQ(header.transfer, expected.front().header.transfer);
          EXPECT_EQ(header.offset, expected.front().header.offset);
          EXPECT_TRUE(payload == Bytes(expected.front().payload));
          expected.pop_front();
          return true;
        });
    ASSERT_TRUE(polled.ok()) << polled.status();
  };
  const absl::Time deadline = In(60);
  while ((frames < 400 || !to_a.empty() || !to_b.empty()) && absl::Now() < deadline) {
    for (const bool forward : {true, false}) {
      if (frames >= 400) break;
      Link& link = forward ? *pair.a : *pair.b;
      const size_t size =
          random() % 8 == 0 ? link.max_payload() : random() % (random() % 2 == 0 ? 64 : 100000);
      Sent sent{{random(), random()}, std::string(size, static_cast<char>(random()))};
      const absl::StatusOr<bool> taken = link.TrySend(sent.header, Bytes(sent.payload));
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!*taken) continue;
      ++frames;
      if (forward) bytes_to_b += size;
      (forward ? to_b : to_a).push_back(std::move(sent));
    }
    receive(*pair.b, to_b);
    receive(*pair.a, to_a);
  }
  EXPECT_TRUE(to_a.empty() && to_b.empty());
  EXPECT_GT(refusals, 0);
  EXPECT_EQ(pair.a->stats().transmit_bytes, bytes_to_b);
  EXPECT_EQ(pair.b->stats().receive_bytes, bytes_to_b);
  EXPECT_TRUE(pair.a->Flushed() && pair.b->Flushed());
}

TEST(TcpTest, AFullWireRefusesAndThenTakesMore) {
  const Pair pair = Connected();
  const std::string payload(pair.a->max_payload(), 'x');
  int taken = 0;
  while (*pair.a->TrySend({0, 0}, Bytes(payload))) ASSERT_LT(++taken, 1000);
  ASSERT_TRUE(pair.a->Arm().ok());
  pollfd entry{pair.a->event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0) << "nothing to do while the wire is full";
  const absl::Time deadline = In(20);
  while (!*pair.a->TrySend({0, 0}, Bytes(payload))) {
    ASSERT_LT(absl::Now(), deadline);
    ASSERT_TRUE(Drop(*pair.b).ok());
    ASSERT_TRUE(Drop(*pair.a).ok());
  }
}

TEST(TcpTest, TheDescriptorWakesForArrivals) {
  const Pair pair = Connected();
  ASSERT_TRUE(pair.b->Arm().ok());
  pollfd entry{pair.b->event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
  ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("hello")));
  EXPECT_TRUE(net::WaitReadable(pair.b->event_fd(), In(20)).ok());
}

TEST(TcpTest, TooLongAFrameIsRefusedHere) {
  const Pair pair = Connected();
  const std::string payload(pair.a->max_payload() + 1, 'x');
  EXPECT_FALSE(pair.a->TrySend({0, 0}, Bytes(payload)).ok());
}

TEST(TcpTest, FramesBeforeTheEndAreDeliveredAndThenTheEndIsAnError) {
  Pair pair = Connected();
  ASSERT_TRUE(*pair.a->TrySend({7, 0}, Bytes("last words")));
  pair.a.reset();
  int frames = 0;
  absl::Status error;
  const absl::Time deadline = In(20);
  while (error.ok() && absl::Now() < deadline) {
    error = pair.b
                ->Poll([&](const FrameHeader& header, absl::Span<const std::byte>) {
                  EXPECT_EQ(header.transfer, 7U);
                  ++frames;
                  return true;
                })
                .status();
  }
  EXPECT_EQ(frames, 1);
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("closed the connection"));
}

TEST(TcpTest, NonsenseOnTheStreamIsAnError) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: railhead\r\n\r\n"),
                                   // A frame of 4 GiB.
                                   std::string("RLHF\xff\xff\xff\xff") + std::string(16, '\0')}) {
    const HalfPair pair = HalfConnected();
    ASSERT_TRUE(net::SendAll(pair.raw.get(), bytes, In(20)).ok());
    EXPECT_THAT(std::string(ErrorOf(*pair.link).message()), HasSubstr("not a frame"));
  }
}

TEST(TcpTest, AnEndWithinAFrameIsAnError) {
  HalfPair pair = HalfConnected();
  ASSERT_TRUE(net::SendAll(pair.raw.get(), std::string("RLHF\x04\0\0\0", 8), In(20)).ok());
  pair.raw.Reset();
  EXPECT_THAT(std::string(ErrorOf(*pair.link).message()), HasSubstr("within a frame"));
}

TEST(TcpTest, StrangersAtTheListeningSideAreTurnedAway) {
  // Both sides listen; one of the two is the one that waits. Strangers call at both.
  std::unique_ptr<Endpoint> a = *OpenTcpEndpoint(Loopback(), "rank 1");
  std::unique_ptr<Endpoint> b = *OpenTcpEndpoint(Loopback(), "rank 0");
  const auto port_of = [](const Endpoint& endpoint) {
    const std::string address = endpoint.Address();  // length, 4 bytes of IP, port
    return static_cast<unsigned char>(address[8]) | static_cast<unsigned char>(address[9]) << 8;
  };
  const net::Fd silent_a = DialStranger(port_of(*a));
  const net::Fd silent_b = DialStranger(port_of(*b));
  const net::Fd babbling_a = DialStranger(port_of(*a));
  const net::Fd babbling_b = DialStranger(port_of(*b));
  for (const net::Fd* fd : {&babbling_a, &babbling_b}) {
    ASSERT_TRUE(net::SendAll(fd->get(), std::string(1000, 'x'), In(20)).ok());
  }
  Pair pair;
  std::thread other([&] { pair.b = *b->Connect(a->Address(), In(20)); });
  pair.a = *a->Connect(b->Address(), In(20));
  other.join();
  ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("through")));
  bool arrived = false;
  const absl::Time deadline = In(20);
  while (!arrived && absl::Now() < deadline) {
    ASSERT_TRUE(pair.b
                    ->Poll([&](const FrameHeader&, absl::Span<const std::byte> payload) {
                      arrived = payload == Bytes("through");
                      return true;
                    })
                    .ok());
  }
  EXPECT_TRUE(arrived);
}

TEST(TcpTest, APeerThatDoesNotComeIsNamedAtTheDeadline) {
  // Of the two, one dials a listener that never answers and the other waits in vain.
  for (int i = 0; i < 4; ++i) {
    std::unique_ptr<Endpoint> a = *OpenTcpEndpoint(Loopback(), "rank 1 (pod x)");
    std::unique_ptr<Endpoint> b = *OpenTcpEndpoint(Loopback(), "rank 0");
    const absl::StatusOr<std::unique_ptr<Link>> link = a->Connect(b->Address(), In(0.1));
    EXPECT_EQ(link.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(link.status().message()), HasSubstr("rank 1 (pod x)"));
  }
}

TEST(TcpTest, BadAddressesAreRefused) {
  std::unique_ptr<Endpoint> endpoint = *OpenTcpEndpoint(Loopback(), "rank 1");
  const std::string good = (*OpenTcpEndpoint(Loopback(), "rank 0"))->Address();
  EXPECT_FALSE(endpoint->Connect("", In(1)).ok());
  EXPECT_FALSE(endpoint->Connect(good.substr(0, good.size() - 1), In(1)).ok());
  EXPECT_FALSE(endpoint->Connect(good + "x", In(1)).ok());
  EXPECT_FALSE(endpoint->Connect(std::string(26, '\xff'), In(1)).ok());
  EXPECT_FALSE(endpoint->Connect(endpoint->Address(), In(1)).ok()) << "that is this side's own";
}

TEST(TcpTest, ACloseOfTheRawSideShowsAsError) {
  HalfPair pair = HalfConnected();
  pair.raw.Reset();
  EXPECT_EQ(ErrorOf(*pair.link).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace railhead::transport
