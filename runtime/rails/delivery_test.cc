// SPDX-License-Identifier: Apache-2.0
//
// Point-to-point programs of several ranks, made at random, over links that behave as TCP does:
// acknowledgements stand in line behind data. Every legal program must end, with the right bytes,
// whatever the ranks' pace is and whichever rails are lost meanwhile.
//
// RAILHEAD_SEEDS=10000 plays that many programs of each kind (make soak).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/testing/acceptors.h"
#include "runtime/testing/fake_link.h"
#include "runtime/testing/programs.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::rails {
namespace {

using railhead::testing::FakeLink;
using railhead::testing::FakePair;
using railhead::testing::programs::Message;
using railhead::testing::programs::Operation;
using railhead::testing::programs::Program;
using railhead::testing::programs::Steps;

// Under a sanitizer each takes many times as long, so there are fewer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kSlower = 5;
#else
constexpr uint32_t kSlower = 1;
#endif

uint32_t Seeds(uint32_t by_default) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  uint32_t seeds = 0;
  return wanted != nullptr && absl::SimpleAtoi(wanted, &seeds) ? seeds : by_default / kSlower;
}

// Of up to six ranks.
Program RandomProgram(std::mt19937& random) {
  const int ranks = 2 + static_cast<int>(random() % 5);
  return railhead::testing::programs::RandomProgram(random, ranks);
}

// ---- Worlds ----

// Makes both ends of a rail between two ranks.
using MakeRail = std::function<std::pair<Rail, Rail>(int a, int b, size_t rail)>;

// Ranks in one thread, with peers to each other.
class World {
 public:
  World(const Program& program, size_t rails, const MakeRail& make) : program_(program) {
    const int ranks = static_cast<int>(program.ranks.size());
    ranks_.resize(static_cast<size_t>(ranks));
    const Logger quiet(LogLevel::kError, "");
    for (int a = 0; a < ranks; ++a) {
      for (int b = a + 1; b < ranks; ++b) {
        std::vector<Rail> of_a;
        std::vector<Rail> of_b;
        for (size_t rail = 0; rail < rails; ++rail) {
          auto [at_a, at_b] = make(a, b, rail);
          of_a.push_back(std::move(at_a));
          of_b.push_back(std::move(at_b));
        }
        At(a).peers[b] = std::make_unique<Peer>(absl::StrCat("rank ", b), std::move(of_a), quiet);
        At(b).peers[a] = std::make_unique<Peer>(absl::StrCat("rank ", a), std::move(of_b), quiet);
      }
    }
    for (size_t m = 0; m < program.messages.size(); ++m) {
      std::vector<uint8_t> bytes(program.messages[m].size);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = Byte(m, i);
      sent_.push_back(std::move(bytes));
      got_.emplace_back(program.messages[m].size);
    }
  }

  // One look of a rank at its peers and its program. If it `keeps`, it does not wait for
  // acknowledgements of what it can copy.
  absl::Status Step(size_t rank, absl::Time now, bool keeps) {
    Rank& at = ranks_[rank];
    Advance(at, program_.ranks[rank]);
    for (const auto& [other, peer] : at.peers) {
      if (keeps) peer->KeepUnacknowledged();
      if (absl::Status polled = peer->Poll(now).status(); !polled.ok()) return polled;
      // Who has nothing more to say tells the others what has come, as one who sleeps does.
      if (at.step < program_.ranks[rank].size()) continue;
      if (absl::Status told = peer->Acknowledge(); !told.ok()) return told;
    }
    return absl::OkStatus();
  }
  // All have come to their ends and know that all has arrived, so that nothing is left to repeat.
  bool Done() const {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].step < program_.ranks[rank].size()) return false;
      for (const auto& [other, peer] : ranks_[rank].peers) {
        if (!peer->Acknowledged()) return false;
      }
    }
    return true;
  }
  size_t Wrong() const {
    size_t wrong = 0;
    for (size_t m = 0; m < got_.size(); ++m) {
      for (size_t i = 0; i < got_[m].size(); ++i) {
        if (got_[m][i] == Byte(m, i)) continue;
        ++wrong;
        break;
      }
    }
    return wrong;
  }
  size_t size() const { return ranks_.size(); }
  std::string Describe() const {
    std::string text;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      absl::StrAppend(&text, "rank ", rank, " at step ", ranks_[rank].step, "\n");
      for (const auto& [other, peer] : ranks_[rank].peers) {
        if (!peer->Idle()) absl::StrAppend(&text, "  ", peer->DescribeProgress(), "\n");
      }
    }
    return text;
  }

 private:
  struct Ticket {
    bool sends = false;
    int peer = 0;
    uint64_t number = 0;
    size_t message = 0;
  };
  struct Rank {
    std::map<int, std::unique_ptr<Peer>> peers;
    size_t step = 0;
    bool posted = false;
    std::vector<Ticket> tickets;
  };

  static uint8_t Byte(size_t message, size_t i) {
    return static_cast<uint8_t>(message * 31 + i * 7 + (i >> 12U));
  }
  Rank& At(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  void Advance(Rank& at, const Steps& steps) {
    if (at.step == steps.size()) return;
    if (!at.posted) {
      for (const Operation& operation : steps[at.step]) Post(at, operation);
      at.posted = true;
    }
    for (const Ticket& ticket : at.tickets) {
      const Peer& peer = *at.peers[ticket.peer];
      if (!(ticket.sends ? peer.SendDone(ticket.number) : peer.ReceiveDone(ticket.number))) return;
    }
    // What was sent is the caller's again.
    for (const Ticket& ticket : at.tickets) {
      if (ticket.sends) std::fill(sent_[ticket.message].begin(), sent_[ticket.message].end(), 0xff);
    }
    at.tickets.clear();
    at.posted = false;
    ++at.step;
  }
  void Post(Rank& at, const Operation& operation) {
    const Message& message = program_.messages[operation.message];
    if (operation.sends) {
      const std::vector<uint8_t>& bytes = sent_[operation.message];
      const uint64_t number = at.peers[message.to]->PostSend(
          {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
      at.tickets.push_back({true, message.to, number, operation.message});
      return;
    }
    collectives::ReceiveBuffer buffer;
    buffer.data = reinterpret_cast<std::byte*>(got_[operation.message].data());
    buffer.size = message.size;
    at.tickets.push_back(
        {false, message.from, at.peers[message.from]->PostReceive(buffer), operation.message});
  }

  const Program& program_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<uint8_t>> sent_;
  std::vector<std::vector<uint8_t>> got_;
};

// Plays a program to its end: ranks look in random order and at random paces. `between` may do harm
// before each look.
void Play(
    std::mt19937& random, const Program& program, World& world,
    const std::function<void()>& between = [] {}) {
  std::vector<uint32_t> pace;
  for (size_t rank = 0; rank < world.size(); ++rank) pace.push_back(1 + random() % 8);
  absl::Time now = absl::UnixEpoch();
  for (int look = 0; !world.Done(); ++look) {
    ASSERT_LT(look, 3000000) << ToString(program) << world.Describe();
    between();
    // A rail that is lost again and again waits for up to a minute.
    now += absl::Milliseconds(random() % 20);
    const size_t rank = random() % world.size();
    if (random() % pace[rank] != 0) continue;
    const absl::Status stepped = world.Step(rank, now, random() % 8 == 0);
    ASSERT_TRUE(stepped.ok()) << stepped << "\n" << ToString(program) << world.Describe();
  }
  EXPECT_EQ(world.Wrong(), 0U) << ToString(program);
}

TEST(DeliveryTest, LegalProgramsEndWhateverThePace) {
  for (uint32_t seed = 0; seed < Seeds(150); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Program program = RandomProgram(random);
    const size_t rails = 1 + random() % 4;
    World world(program, rails, [&random](int, int, size_t rail) {
      auto [a, b] = FakePair();
      for (FakeLink* link : {a.get(), b.get()}) {
        link->lazy = true;
        link->has_room = [&random] { return random() % 8 != 0; };
        link->delivers = [&random] { return random() % 8 != 0; };
        link->places = [&random] { return random() % 2 == 0; };
      }
      const RailName name{static_cast<int>(rail), absl::StrCat("eth", rail), 0, "tcp"};
      return std::pair(Rail{name, std::move(a)}, Rail{name, std::move(b)});
    });
    ASSERT_NO_FATAL_FAILURE(Play(random, program, world));
  }
}

TEST(DeliveryTest, LegalProgramsEndWhileRailsComeAndGo) {
  for (uint32_t seed = 0; seed < Seeds(150); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Program program = RandomProgram(random);
    const size_t rails = 1 + random() % 3;
    std::vector<FakeLink*> links;
    World world(program, rails, [&](int, int, size_t rail) {
      auto [a, b] = FakePair();
      for (FakeLink* link : {a.get(), b.get()}) {
        link->lazy = true;
        link->has_room = [&random] { return random() % 4 != 0; };
        link->delivers = [&random] { return random() % 4 != 0; };
        link->places = [&random] { return random() % 2 == 0; };
        link->notices = [&random] { return random() % 16 == 0; };
      }
      links.push_back(a.get());
      const RailName name{static_cast<int>(rail), absl::StrCat("eth", rail), 0, "tcp"};
      return std::pair(Rail{name, std::move(a)}, Rail{name, std::move(b)});
    });
    const uint32_t calm = 50 + random() % 400;
    ASSERT_NO_FATAL_FAILURE(Play(random, program, world, [&] {
      if (random() % calm == 0) {
        testing::FakeCable& cable = links[random() % links.size()]->cable();
        if (cable.plugged) {
          cable.Cut();
        } else {
          cable.plugged = true;
        }
      }
      // A cable without which nothing goes on comes back some day.
      if (random() % calm == 0) links[random() % links.size()]->cable().plugged = true;
    }));
  }
}

// The same over the loopback's TCP, whose buffers are real.
TEST(DeliveryTest, LegalProgramsEndOverTcp) {
  for (uint32_t seed = 0; seed < Seeds(25); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Program program = RandomProgram(random);
    const size_t rails = 1 + random() % 4;
    std::vector<std::vector<std::shared_ptr<transport::Acceptor>>> acceptors(program.ranks.size());
    for (auto& of_rank : acceptors) {
      for (size_t rail = 0; rail < rails; ++rail) {
        of_rank.push_back(railhead::testing::OpenAcceptor(program.ranks.size()));
      }
    }
    World world(program, rails, [&](int a, int b, size_t rail) {
      const RailName name{static_cast<int>(rail), "lo", 0, "tcp"};
      const auto end = [&](int from, int to) {
        const auto& acceptor = acceptors[static_cast<size_t>(from)][rail];
        const auto& other = acceptors[static_cast<size_t>(to)][rail];
        return Rail{name,
                    *transport::OpenTcpLink(acceptor, other->Address(), absl::StrCat("rank ", to))};
      };
      return std::pair(end(a, b), end(b, a));
    });
    const absl::Time begin = MonotonicNow();
    while (!world.Done()) {
      const absl::Time now = MonotonicNow();
      ASSERT_LT(now - begin, absl::Seconds(100)) << ToString(program) << world.Describe();
      const size_t rank = random() % world.size();
      for (const auto& acceptor : acceptors[rank]) acceptor->LookRound(now);
      const absl::Status stepped = world.Step(rank, now, random() % 8 == 0);
      ASSERT_TRUE(stepped.ok()) << stepped << "\n" << ToString(program) << world.Describe();
    }
    EXPECT_EQ(world.Wrong(), 0U) << ToString(program);
  }
}

// The generator must give what has hung before: a rank that sends first beside one that does both
// at once, and messages beyond what fits into buffers.
TEST(DeliveryTest, ProgramsHaveGroupsCirclesAndLongMessages) {
  int groups = 0;
  int circles = 0;
  int beyond = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Program program = RandomProgram(random);
    ASSERT_TRUE(InOrder(program));
    ASSERT_TRUE(EndsWithoutBuffers(program));
    for (const Steps& steps : program.ranks) {
      for (const auto& step : steps) {
        const auto sends = [](const Operation& operation) { return operation.sends; };
        groups += step.size() > 1 ? 1 : 0;
        circles += std::any_of(step.begin(), step.end(), sends) &&
                           !std::all_of(step.begin(), step.end(), sends)
                       ? 1
                       : 0;
      }
    }
    const auto longest =
        std::max_element(program.messages.begin(), program.messages.end(),
                         [](const Message& a, const Message& b) { return a.size < b.size; });
    beyond += longest->size > 2 * kRoom ? 1 : 0;
  }
  EXPECT_GT(groups, 100);
  EXPECT_GT(circles, 100);
  EXPECT_GT(beyond, 30);
}

// ---- Ranks that contradict each other ----

struct Pair {
  std::unique_ptr<Peer> a;
  std::unique_ptr<Peer> b;
  std::vector<FakeLink*> links;  // of a

  explicit Pair(size_t rails) {
    std::vector<Rail> of_a;
    std::vector<Rail> of_b;
    for (size_t rail = 0; rail < rails; ++rail) {
      auto [at_a, at_b] = FakePair();
      links.push_back(at_a.get());
      const RailName name{static_cast<int>(rail), absl::StrCat("eth", rail), 0, "tcp"};
      of_a.push_back({name, std::move(at_a)});
      of_b.push_back({name, std::move(at_b)});
    }
    const Logger quiet(LogLevel::kError, "");
    a = std::make_unique<Peer>("rank 1", std::move(of_a), quiet);
    b = std::make_unique<Peer>("rank 0", std::move(of_b), quiet);
  }

  absl::Status Poll(int times) const {
    for (int i = 0; i < times; ++i) {
      for (Peer* peer : {a.get(), b.get()}) {
        if (absl::Status polled = peer->Poll(absl::UnixEpoch()).status(); !polled.ok()) {
          return polled;
        }
      }
    }
    return absl::OkStatus();
  }
};

absl::Span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

collectives::ReceiveBuffer IntoText(std::string& text) {
  collectives::ReceiveBuffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(text.data());
  buffer.size = text.size();
  return buffer;
}

// Also after a failover, when frames that come twice are dropped; and whichever of the two comes
// first, and also where the receiver expects nothing at all.
TEST(DeliveryTest, AWrongSizeIsAnErrorAtAnyTime) {
  for (const bool failed_over : {false, true}) {
    for (const bool early : {false, true}) {
      for (const size_t expected : {size_t{0}, size_t{32768}, size_t{65537}}) {
        Pair pair(2);
        if (failed_over) {
          pair.links[0]->cable().Cut();
          ASSERT_TRUE(pair.Poll(5).ok());
        }
        const std::string data(65536, 'd');
        std::string into(expected, '\0');
        if (!early) pair.b->PostReceive(IntoText(into));
        pair.a->PostSend(AsBytes(data));
        if (early) {
          ASSERT_TRUE(pair.Poll(5).ok());
          pair.b->PostReceive(IntoText(into));
        }
        const absl::Status status = pair.Poll(20);
        EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failed_over << early << expected;
        EXPECT_NE(status.message().find("65536"), std::string::npos) << status;
        EXPECT_NE(status.message().find(absl::StrCat(expected)), std::string::npos) << status;
        EXPECT_EQ(into, std::string(expected, '\0')) << "nothing is delivered wrongly";
      }
    }
  }
}

// Sizes that are the same do not hide that the calls are not, whatever was lost before.
TEST(DeliveryTest, AnotherCallIsAnErrorAtAnyTime) {
  using collectives::Call;
  using collectives::Collective;
  const Call sent({.collective = Collective::kAllReduce, .type = rhFloat32, .count = 1000});
  const std::vector<Call> others = {
      Call({.collective = Collective::kBroadcast, .type = rhFloat32, .count = 1000}),
      Call({.collective = Collective::kAllReduce, .type = rhInt32, .count = 1000}),
      Call({.collective = Collective::kAllReduce, .type = rhFloat32, .op = rhMax, .count = 1000})};
  for (const bool failed_over : {false, true}) {
    for (const Call& expected : others) {
      Pair pair(2);
      if (failed_over) {
        pair.links[0]->cable().Cut();
        ASSERT_TRUE(pair.Poll(5).ok());
      }
      const std::string data(4000, 'd');
      std::string into(data.size(), '\0');
      pair.a->Expect(sent);
      pair.b->Expect(expected);
      pair.b->PostReceive(IntoText(into));
      pair.a->PostSend(AsBytes(data));
      const absl::Status status = pair.Poll(20);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failed_over;
      EXPECT_NE(status.message().find(collectives::Contradiction("rank 0", sent, expected)),
                std::string::npos)
          << status;
      EXPECT_EQ(into, std::string(data.size(), '\0')) << "nothing is delivered wrongly";
    }
  }
}

// A peer that sends beyond its room is not believed, nor one that claims what cannot be.
TEST(DeliveryTest, ClaimsThatCannotBeAreErrors) {
  Pair pair(1);
  transport::FrameHeader header;
  header.kind = transport::FrameKind::kPosted;
  header.posted = uint32_t{1} << 30;
  ASSERT_TRUE(pair.links[0]->TrySend(header, {}).ok());
  const absl::Status status = pair.Poll(2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("claims to have posted"), std::string::npos) << status;
}

// ---- What was found by reading ----

// A sender that may not go on for want of posted receives goes on as soon as there are some, over
// whichever rail is well: two grouped sends against two receives in turn, one rail being dead.
TEST(DeliveryTest, ARepeatNeverStandsBehindWhatIsNotPosted) {
  Pair pair(2);
  static_cast<FakeLink&>(pair.b->link(0)).delivers = [] { return false; };
  const std::string data(size_t{16} << 20, 'x');
  std::string into(data.size(), '\0');
  const uint64_t first = pair.a->PostSend(AsBytes(data));
  const uint64_t second = pair.a->PostSend(AsBytes(data));
  uint64_t receive = pair.b->PostReceive(IntoText(into));
  // All of the first one is under way, and of the second one as much as there is room for.
  const auto sent = [&] {
    return pair.links[0]->stats().transmit_bytes + pair.links[1]->stats().transmit_bytes;
  };
  for (int i = 0; sent() <= data.size(); ++i) {
    ASSERT_LT(i, 10000);
    ASSERT_TRUE(pair.Poll(1).ok());
  }
  ASSERT_TRUE(pair.Poll(10).ok());
  ASSERT_LE(sent(), data.size() + kRoom);
  ASSERT_FALSE(pair.b->ReceiveDone(receive));
  pair.links[0]->cable().Cut();
  for (int i = 0; !pair.b->ReceiveDone(receive); ++i) {
    ASSERT_LT(i, 10000);
    ASSERT_TRUE(pair.Poll(1).ok());
  }
  EXPECT_TRUE(into == data);
  receive = pair.b->PostReceive(IntoText(into));
  for (int i = 0; !pair.b->ReceiveDone(receive) || !pair.a->SendDone(second); ++i) {
    ASSERT_LT(i, 10000);
    ASSERT_TRUE(pair.Poll(1).ok());
  }
  EXPECT_TRUE(pair.a->SendDone(first));
}

// Copies do not widen the room: a group of one message that is waited for and many small ones, then
// more, with the first rail lost.
TEST(DeliveryTest, CopiesOfTheTailTakeNoMoreRoom) {
  Pair pair(2);
  pair.links[1]->has_room = [] { return false; };
  const std::string longer(20 << 10, 'l');
  const std::string small(8, 's');
  pair.a->PostSend(AsBytes(longer));
  for (int i = 0; i < 40; ++i) pair.a->PostSend(AsBytes(small));
  ASSERT_TRUE(pair.a->Poll(absl::UnixEpoch()).ok());
  pair.links[0]->hears = [] { return false; };
  ASSERT_TRUE(pair.Poll(1).ok());
  EXPECT_TRUE(pair.a->KeepUnacknowledged());
  pair.links[0]->cable().Cut();
  pair.links[1]->has_room = [] { return true; };
  for (int i = 0; i < 64; ++i) pair.a->PostSend(AsBytes(small));
  std::vector<std::string> into;
  into.emplace_back(longer.size(), '\0');
  for (int i = 0; i < 104; ++i) into.emplace_back(small.size(), '\0');
  uint64_t last = 0;
  for (std::string& text : into) last = pair.b->PostReceive(IntoText(text));
  ASSERT_TRUE(pair.Poll(200).ok());
  EXPECT_TRUE(pair.b->ReceiveDone(last)) << pair.b->DescribeProgress();
}

// What is copied has been sent all the same, and takes as much of the room at the peer as before.
TEST(DeliveryTest, CopiedBytesStillTakeRoom) {
  SendLedger sends(1);
  const std::string small(kCopied, 's');
  const std::string longer(kMaxTail, 'l');
  const auto hand_all = [&sends] {
    while (const std::optional<Chunk> next = sends.Next()) sends.Handed(0, *next);
  };
  const auto post = [&sends](const std::string& text) {
    return sends.Post(AsBytes(text), {}, text.size(), /*may_copy=*/true);
  };
  const uint64_t waited_for = post(longer);
  size_t used = FrameCost(longer.size());
  for (; used + FrameCost(kCopied) <= kRoom; used += FrameCost(kCopied)) post(small);
  hand_all();
  ASSERT_EQ(sends.waiting(), 0U);
  ASSERT_FALSE(sends.Done(waited_for));
  ASSERT_TRUE(sends.CopyTail());
  ASSERT_TRUE(sends.Done(waited_for));
  const uint64_t next = post(small);
  EXPECT_FALSE(sends.Next().has_value());
  // One receive makes room for it, and for no more than it has taken.
  ASSERT_TRUE(sends.PeerPosted(1).ok());
  hand_all();
  EXPECT_TRUE(sends.Done(next));
}

// A long chunk that the peer's room does not take whole would leave the rest of the room unused.
TEST(DeliveryTest, AChunkIsCutToTheRoomForEarlyFrames) {
  SendLedger sends(1);
  constexpr size_t kLong = size_t{1} << 20;
  const std::string small(kCopied, 's');
  const std::string longer(2 * kLong, 'l');
  sends.Post(AsBytes(small), {}, kCopied, /*may_copy=*/true);
  sends.Post(AsBytes(longer), {}, kLong, /*may_copy=*/true);
  std::vector<size_t> early;
  while (const std::optional<Chunk> next = sends.Next()) {
    early.push_back(next->size);
    sends.Handed(0, *next);
  }
  EXPECT_EQ(early, (std::vector<size_t>{kCopied, kLong}));
  ASSERT_TRUE(sends.PeerPosted(1).ok());
  EXPECT_FALSE(sends.Next().has_value()) << "the room is used";
  ASSERT_TRUE(sends.PeerPosted(2).ok());
  ASSERT_TRUE(sends.Next().has_value());
  EXPECT_EQ(sends.Next()->size, kLong) << "what is posted needs no room";

  SendLedger crowded(1);
  for (int i = 0; i < 8; ++i) crowded.Post(AsBytes(small), {}, kCopied, /*may_copy=*/true);
  crowded.Post(AsBytes(longer), {}, kLong, /*may_copy=*/true);
  size_t sum = 0;
  size_t longest = 0;
  while (const std::optional<Chunk> next = crowded.Next()) {
    sum += FrameCost(next->size);
    longest = std::max(longest, next->size);
    crowded.Handed(0, *next);
  }
  EXPECT_LE(sum, kRoom);
  EXPECT_GT(sum, kRoom * 3 / 4);
  EXPECT_LT(longest, kLong);
}

// News of a lost rail has a number where data has its offset: it is not about a frame that is just
// being written to its place over another rail.
TEST(DeliveryTest, NewsOfALostRailStopsNoFrame) {
  Pair pair(3);
  auto& receiver = static_cast<FakeLink&>(pair.b->link(1));
  receiver.places = [] { return true; };
  bool half = false;
  receiver.delivers = [&half] { return !std::exchange(half, true); };
  const std::string data(10000, 'x');
  std::string into(data.size(), '\0');
  const uint64_t receive = pair.b->PostReceive(IntoText(into));
  pair.links[0]->has_room = pair.links[2]->has_room = [] { return false; };
  pair.a->PostSend(AsBytes(data));
  ASSERT_TRUE(pair.Poll(2).ok());
  EXPECT_EQ(into[0], 'x') << "half of it";
  pair.links[0]->has_room = [] { return true; };
  pair.links[2]->cable().Cut();
  ASSERT_TRUE(pair.Poll(5).ok());
  EXPECT_FALSE(pair.b->rail_health(2).up);
  receiver.delivers = [] { return true; };
  ASSERT_TRUE(pair.Poll(5).ok());
  EXPECT_TRUE(pair.b->ReceiveDone(receive)) << pair.b->DescribeProgress();
  EXPECT_TRUE(into == data);
}

// News of a lost rail goes once. A rail that has returned is not dropped for old news.
TEST(DeliveryTest, ARailThatHasReturnedStays) {
  Pair pair(2);
  pair.links[0]->cable().Cut();
  ASSERT_TRUE(pair.Poll(5).ok());
  pair.links[0]->cable().plugged = true;
  absl::Time now = absl::UnixEpoch();
  const std::string data(8, 'x');
  std::string into(8, '\0');
  for (int i = 0; i < 50; ++i) {
    now += absl::Milliseconds(100);
    const uint64_t ticket = pair.b->PostReceive(IntoText(into));
    pair.a->PostSend(AsBytes(data));  // before this side has looked at its rails
    for (int look = 0; look < 5; ++look) {
      ASSERT_TRUE(pair.a->Poll(now).ok());
      ASSERT_TRUE(pair.b->Poll(now).ok());
    }
    ASSERT_TRUE(pair.b->ReceiveDone(ticket));
  }
  for (const Peer* peer : {pair.a.get(), pair.b.get()}) {
    EXPECT_TRUE(peer->rail_health(0).up);
    EXPECT_EQ(peer->rail_health(0).failovers, 1U);
    EXPECT_EQ(peer->rail_health(0).returns, 1U);
  }
}

// Nor for news that was under way while it returned.
TEST(DeliveryTest, LateNewsDropsNoRailThatHasReturned) {
  Pair pair(2);
  auto& receiver = static_cast<FakeLink&>(pair.b->link(1));
  receiver.delivers = [] { return false; };
  pair.links[0]->cable().Cut();
  ASSERT_TRUE(pair.Poll(2).ok());
  ASSERT_FALSE(pair.b->rail_health(0).up);
  pair.links[0]->cable().plugged = true;
  ASSERT_TRUE(pair.Poll(2).ok());
  ASSERT_TRUE(pair.b->rail_health(0).up);
  receiver.delivers = [] { return true; };
  ASSERT_TRUE(pair.Poll(5).ok());
  for (const Peer* peer : {pair.a.get(), pair.b.get()}) {
    EXPECT_TRUE(peer->rail_health(0).up);
    EXPECT_EQ(peer->rail_health(0).failovers, 1U);
  }
}

}  // namespace
}  // namespace railhead::rails
