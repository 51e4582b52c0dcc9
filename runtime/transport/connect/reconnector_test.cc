// SPDX-License-Identifier: Apache-2.0
//
// Impostors, over real sockets: whoever takes a peer's address, or has heard what ranks say to each
// other, is no rank by that.
#include "runtime/transport/connect/reconnector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/mac.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"
#include "runtime/testing/acceptors.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/relay.h"
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::transport {
namespace {

using railhead::testing::AddressAt;
using railhead::testing::DialStranger;
using railhead::testing::Relay;
using ::testing::HasSubstr;

const RailKey kJobsKey{"a key that the job's ranks have", 1};

absl::Time Soon() { return MonotonicNow() + absl::Seconds(20); }

std::shared_ptr<Acceptor> HallOf(uint32_t rank, const RailKey& key = kJobsKey) {
  return railhead::testing::OpenAcceptor(1, rank, key);
}

// Two acceptors of which the first one's rank dials.
struct TwoAcceptors {
  std::shared_ptr<Acceptor> dials = HallOf(0);
  std::shared_ptr<Acceptor> waits = HallOf(1);
  TwoAcceptors() {
    while (waits->own().token < dials->own().token) waits = HallOf(1);
  }
};

absl::Status PollOnce(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return true; })
      .moved.status();
}

// Works at all links that are not connected, and polls the others, until `done`.
bool WorkAt(const std::vector<Link*>& links, const std::vector<Relay*>& relays,
            const std::function<bool()>& done) {
  const absl::Time deadline = Soon();
  while (!done()) {
    if (MonotonicNow() >= deadline) return false;
    for (Relay* relay : relays) relay->Pump();
    for (Link* link : links) {
      if (!PollOnce(*link).ok()) link->Reconnect(MonotonicNow()).IgnoreError();
    }
  }
  return true;
}

// An acceptor whose listener is the test's to choose; without one, its interface has no address.
struct LateAcceptor {
  std::shared_ptr<RailListener> listener;
  std::shared_ptr<Acceptor> acceptor;

  void Open(uint32_t rank) {
    acceptor = *Acceptor::Open(
        [this]() -> absl::StatusOr<std::shared_ptr<RailListener>> {
          if (listener == nullptr) return absl::UnavailableError("it has no address");
          return listener;
        },
        1, rank, kJobsKey);
  }
  static std::shared_ptr<RailListener> At(const char* address) {
    return *RailListener::Open(*net::IpAddress::Parse(address));
  }
};

// Whichever side it is, and whether it had no address at the start or gets another one.
TEST(ReconnectorTest, ARailWithANewAddressConnectsOnceThePeerKnowsIt) {
  for (const bool late_dials : {true, false}) {
    for (const bool had_one : {false, true}) {
      SCOPED_TRACE(absl::StrCat("the late one dials: ", late_dials, ", had one: ", had_one));
      LateAcceptor late;
      if (had_one) late.listener = LateAcceptor::At("127.0.0.1");
      const std::shared_ptr<Acceptor> other = HallOf(0);
      do {
        late.Open(1);
      } while ((late.acceptor->own().token < other->own().token) != late_dials);
      const std::unique_ptr<Link> a =
          *OpenTcpLink(late.acceptor, other->Address(), "rank 0", FrameProtection::kNone);
      const std::unique_ptr<Link> b =
          *OpenTcpLink(other, late.acceptor->Address(), "rank 1", FrameProtection::kNone);
      const auto connected = [&] {
        b->PeerMovedTo(a->MovedTo());
        return a->connected() && b->connected();
      };
      b->PeerMovedTo("nonsense");
      b->PeerMovedTo(HallOf(1)->Address());
      EXPECT_EQ(a->MovedTo(), "");
      if (had_one) {
        ASSERT_TRUE(WorkAt({a.get(), b.get()}, {}, connected));
      } else {
        EXPECT_FALSE(a->Reconnect(MonotonicNow()).ok());
        EXPECT_THAT(std::string(a->Reconnect(MonotonicNow()).status().message()),
                    HasSubstr("it has no address"));
      }
      late.listener = LateAcceptor::At("127.0.0.2");
      // It is lost until the acceptor has looked for its address, and once more then.
      for (bool last = false; !last;) {
        last = late.acceptor->own().port == late.listener->port();
        a->Drop("lost");
        b->Drop("lost");
        ASSERT_TRUE(WorkAt({a.get(), b.get()}, {}, connected));
      }
      EXPECT_EQ(late.acceptor->own().ip.ToString(), "127.0.0.2");
    }
  }
}

// The other side cannot ask it to call, and must not end its call for that.
TEST(ReconnectorTest, ARankWhoseAddressIsUnknownCalls) {
  const std::shared_ptr<RailListener> listener = LateAcceptor::At("127.0.0.1");
  const auto listen = [listener] { return listener; };
  const std::string low(kTokenSize, '\1');
  const std::string high(kTokenSize, '\2');
  const std::shared_ptr<Acceptor> calls = Acceptor::OpenUntold(low, listen, 1, kJobsKey);
  const std::shared_ptr<Acceptor> waits = Acceptor::OpenAs(high, listen, 1, kJobsKey);
  const std::unique_ptr<Link> a = *OpenTcpLink(calls, waits->Address(), "the other");
  // No address, no port, and the token.
  const std::unique_ptr<Link> b =
      *OpenTcpLink(waits, absl::StrCat(std::string(6, '\0'), low), "the caller");
  const absl::Time deadline = Soon();
  while (!a->connected() || !b->connected()) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_EQ(a->Reconnect(MonotonicNow()).status(), absl::OkStatus());
    // The cause is known until the call arrives.
    b->Reconnect(MonotonicNow()).IgnoreError();
  }
  // It can say its address then.
  EXPECT_EQ(a->MovedTo(), calls->Address());
  EXPECT_EQ(b->MovedTo(), "");
}

// Who answers at the peer's place: takes one Hello, says something, and hears what comes to that.
class Impostor {
 public:
  Impostor() : listener_(*net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0)) {}
  uint16_t port() const { return net::LocalAddress(listener_.get())->port; }

  void Pump(const std::function<std::string(const std::string& hello)>& answer) {
    if (net::Fd caller = *net::Accept(listener_.get()); caller.valid()) {
      caller_ = std::move(caller);
      heard_.clear();
      answered_ = false;
    }
    if (!caller_.valid()) return;
    net::ReceiveSome(caller_.get(), 4096, &heard_).IgnoreError();
    if (answered_ || heard_.size() < RailHelloSize()) return;
    answered_ = true;
    net::SendAll(caller_.get(), answer(heard_), Soon()).IgnoreError();
  }

 private:
  net::Fd listener_;
  net::Fd caller_;
  std::string heard_;
  bool answered_ = false;
};

// What it says to a Hello, knowing all that has crossed the network.
std::string SwapTokens(const std::string& hello) {
  const size_t from = hello.size() - kMacSize - kRailNonceSize - sizeof(uint64_t) - 2 * kTokenSize;
  std::string swapped = hello;
  swapped.replace(from, kTokenSize, hello.substr(from + kTokenSize, kTokenSize));
  swapped.replace(from + kTokenSize, kTokenSize, hello.substr(from, kTokenSize));
  return swapped;
}

TEST(ReconnectorTest, WhoTakesAPeersAddressIsNotThePeer) {
  const TwoAcceptors acceptors;
  // What the real peer has answered once, and what a rank of other keys would.
  std::string recorded;
  {
    Relay relay(*acceptors.waits);
    const auto a = *OpenTcpLink(acceptors.dials, relay.Address(), "rank 1");
    const auto b = *OpenTcpLink(acceptors.waits, acceptors.dials->Address(), "rank 0");
    ASSERT_TRUE(
        WorkAt({a.get(), b.get()}, {&relay}, [&] { return a->connected() && b->connected(); }));
    recorded = relay.heard().back().acceptor;
  }
  const auto with = [](const RailKey& key) {
    return [key](const std::string& hello) {
      return RailHandshake::OfListener(key, hello, std::string(kRailNonceSize, 'x')).Begin();
    };
  };
  const std::vector<std::function<std::string(const std::string&)>> lies = {
      SwapTokens,
      [](const std::string& hello) { return hello; },
      [&](const std::string& /*hello*/) { return recorded; },
      with({kJobsKey.key, kJobsKey.rail + 1}),
      with({"the key of another session", kJobsKey.rail}),
      with({"", kJobsKey.rail}),
      [](const std::string& /*hello*/) { return std::string(4096, '\0'); },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    Impostor impostor;
    const auto link =
        *OpenTcpLink(acceptors.dials, AddressAt(*acceptors.waits, impostor.port()), "rank 1");
    absl::Status error;
    for (const absl::Time deadline = Soon(); error.ok() && MonotonicNow() < deadline;) {
      impostor.Pump(lies[i]);
      error = link->Reconnect(MonotonicNow()).status();
      EXPECT_FALSE(link->connected()) << i;
    }
    EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << i;
    EXPECT_THAT(std::string(error.message()), HasSubstr("does not prove that it is a rank")) << i;
  }
}

// In the middle of a job: the address is taken when the connection is lost.
TEST(ReconnectorTest, NorIsWhoTakesItWhenTheConnectionIsLost) {
  const TwoAcceptors acceptors;
  Relay relay(*acceptors.waits);
  const auto a = *OpenTcpLink(acceptors.dials, relay.Address(), "rank 1");
  const auto b = *OpenTcpLink(acceptors.waits, acceptors.dials->Address(), "rank 0");
  const auto both = [&] { return a->connected() && b->connected(); };
  ASSERT_TRUE(WorkAt({a.get(), b.get()}, {&relay}, both));
  const std::string recorded = relay.heard().back().acceptor;
  // From now on it answers by itself, with what was right before.
  relay.change = [&](bool from_caller, std::string& bytes) {
    if (!from_caller) bytes = recorded.substr(0, bytes.size());
  };
  relay.Cut();
  std::string error;
  EXPECT_TRUE(WorkAt({b.get()}, {&relay}, [&] {
    if (!PollOnce(*a).ok()) {
      error = std::string(a->Reconnect(MonotonicNow()).status().message());
    }
    return error.find("does not prove that it is a rank") != std::string::npos;
  })) << error;
  EXPECT_FALSE(a->connected());
  // The peer is still who it was.
  relay.change = nullptr;
  EXPECT_TRUE(WorkAt({a.get(), b.get()}, {&relay}, both));
}

// What a rank has said opens nothing a second time, and ends nothing.
TEST(ReconnectorTest, WhoRepeatsWhatARankHasSaidIsTurnedAway) {
  const TwoAcceptors acceptors;
  Relay to_waits(*acceptors.waits);
  Relay to_dials(*acceptors.dials);
  const auto a = *OpenTcpLink(acceptors.dials, to_waits.Address(), "rank 1");
  const auto b = *OpenTcpLink(acceptors.waits, to_dials.Address(), "rank 0");
  const auto both = [&] { return a->connected() && b->connected(); };
  ASSERT_TRUE(WorkAt({a.get(), b.get()}, {&to_waits, &to_dials}, both));
  // Who does not dial knocks, when it has lost the connection and the other does not look.
  b->Drop("the test says so");
  ASSERT_TRUE(WorkAt({b.get()}, {&to_waits, &to_dials}, [&] {
    return !to_dials.heard().empty() && to_dials.heard().back().caller.size() == RailHelloSize();
  }));
  ASSERT_TRUE(WorkAt({a.get(), b.get()}, {&to_waits, &to_dials}, both));
  // All that was said to the two acceptors; nothing of it makes anybody lose the connection.
  struct Said {
    Acceptor* acceptor;
    Link* link;
    std::string words;
  };
  std::vector<Said> all;
  for (const Relay::Heard& heard : to_waits.heard()) {
    all.push_back({acceptors.waits.get(), b.get(), heard.caller.substr(0, RailHelloSize())});
  }
  for (const Relay::Heard& heard : to_dials.heard()) {
    all.push_back({acceptors.dials.get(), a.get(), heard.caller.substr(0, RailHelloSize())});
  }
  // Knocks fade.
  const absl::Time quiet = MonotonicNow() + absl::Milliseconds(300);
  ASSERT_TRUE(WorkAt({a.get(), b.get()}, {&to_waits, &to_dials},
                     [&] { return both() && MonotonicNow() >= quiet; }));
  for (const Said& said : all) {
    if (said.words.size() < RailHelloSize()) continue;  // a knock that was given up
    const uint64_t before = said.link->stats().strangers;
    const net::Fd stranger = DialStranger(said.acceptor->own().port);
    ASSERT_TRUE(net::SendAll(stranger.get(), said.words, Soon()).ok());
    bool closed = false;
    for (const absl::Time deadline = Soon(); !closed && MonotonicNow() < deadline;) {
      for (Link* link : {a.get(), b.get()}) ASSERT_TRUE(PollOnce(*link).ok());
      std::string ignored;
      const absl::StatusOr<bool> open = net::ReceiveSome(stranger.get(), 1, &ignored);
      closed = !open.ok() || !*open;
    }
    EXPECT_TRUE(closed);
    EXPECT_TRUE(
        WorkAt({a.get(), b.get()}, {}, [&] { return said.link->stats().strangers > before; }));
  }
  EXPECT_TRUE(both());
}

TEST(ReconnectorTest, RanksOfOtherJobsRailsAndSessionsDoNotMeet) {
  for (const RailKey& other : {RailKey{"another job's", 1}, RailKey{kJobsKey.key, 2}}) {
    const std::shared_ptr<Acceptor> ours = HallOf(0);
    const std::shared_ptr<Acceptor> theirs = HallOf(1, other);
    const auto a = *OpenTcpLink(ours, theirs->Address(), "rank 1");
    const auto b = *OpenTcpLink(theirs, ours->Address(), "rank 0");
    EXPECT_TRUE(WorkAt({a.get(), b.get()}, {}, [&] {
      EXPECT_FALSE(a->connected() || b->connected());
      return a->stats().strangers + b->stats().strangers > 0;
    }));
  }
}

}  // namespace
}  // namespace railhead::transport
