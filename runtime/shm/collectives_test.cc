// SPDX-License-Identifier: Apache-2.0
//
// Every collective in shared memory, and every succession of them: what one leaves in the cells
// must never meet the next.
#include "runtime/testing/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/shm/group.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/world_for_test.h"
#include "runtime/testing/operations.h"
#include "runtime/testing/ranks.h"

namespace railhead::shm {
namespace {

using railhead::testing::Collective;
using railhead::testing::CollectiveCase;
using railhead::testing::HasRoot;
using railhead::testing::kCollectives;
using railhead::testing::RunRanks;
using railhead::testing::Trial;
using ::testing::AnyOf;
using ::testing::HasSubstr;

absl::Status Do(World& world, int rank, const CollectiveCase& c, Trial& trial,
                const Patience& patience) {
  Group& group = world.at(rank);
  Mailbox& mailbox = world.mailbox(rank);
  mailbox.Begin(patience);
  const int ranks = world.ranks();
  const auto count = static_cast<size_t>(ranks);
  const reduce::Reduction reduction = {c.type, c.op, ranks, {}};
  const size_t bytes = c.count * reduce::SizeOf(c.type);
  switch (c.collective) {
    case Collective::kAllReduce:
      return group.AllReduce(reduction, trial.send(), trial.receive(), c.count, patience);
    case Collective::kAllGather:
      return group.AllGather(trial.send(), trial.receive(), Parts(count, count * bytes), patience);
    case Collective::kReduceScatter:
      return group.ReduceScatter(reduction, trial.send(), trial.receive(),
                                 Parts(count, count * c.count), patience);
    case Collective::kBroadcast:
      return group.Broadcast(trial.send(), trial.receive(), bytes, c.root, patience);
    case Collective::kReduce:
      return group.Reduce(reduction, trial.send(), trial.receive(), c.count, c.root, patience);
    case Collective::kBarrier:
      return group.Barrier(patience);
    case Collective::kAllToAll: {
      const std::vector<std::byte> copy(trial.send(), trial.send() + count * bytes);
      // Messages, of which an all-to-all of listed parts is made, have their turn.
      if (c.count % 3 != 0) return group.AllToAll(copy.data(), trial.receive(), bytes, patience);
      collectives::Operation operation = testing::AsOperation(c, ranks, trial);
      operation.send = copy.data();
      return collectives::PairwiseAllToAll(mailbox, rank, operation);
    }
    case Collective::kGather:
      return group.Gather(trial.send(), trial.receive(), bytes, c.root, patience);
    case Collective::kScatter:
      return group.Scatter(trial.send(), trial.receive(), bytes, c.root, patience);
    case Collective::kSendReceive:
      break;
  }
  return absl::InternalError("no such collective");
}

// `naps`: ranks stay behind now and then, so that others run ahead as far as they may.
void RunCases(World& world, const std::vector<CollectiveCase>& cases, bool naps = false) {
  const std::vector<std::string> wrong = RunRanks(world.ranks(), [&](int rank) -> std::string {
    std::mt19937 random(static_cast<unsigned>(rank));
    for (size_t i = 0; i < cases.size(); ++i) {
      Trial trial(cases[i], rank, world.ranks(), i);
      if (naps && random() % 16 == 0) absl::SleepFor(absl::Microseconds(random() % 500));
      const absl::Status status = Do(world, rank, cases[i], trial, world.patience());
      if (!status.ok()) return std::string(status.message());
      std::string error = trial.Check();
      if (!error.empty()) return absl::StrCat("case ", i, ": ", error);
    }
    return "";
  });
  EXPECT_EQ(wrong, std::vector<std::string>(static_cast<size_t>(world.ranks())));
}

enum class Setting { kRoomy, kCrowded, kWindows };

class CollectivesTest : public ::testing::TestWithParam<std::tuple<int, Setting>> {
 protected:
  CollectivesTest() {
    if (std::get<1>(GetParam()) == Setting::kWindows) world_.OpenWindows(true);
  }

  World world_{std::get<0>(GetParam()), std::get<1>(GetParam()) != Setting::kRoomy};
};

TEST_P(CollectivesTest, EveryTypeAndOperator) {
  std::vector<CollectiveCase> cases;
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (int op = rhSum; op <= rhBxor; ++op) {
      const auto t = static_cast<rhDataType_t>(type);
      const auto o = static_cast<rhRedOp_t>(op);
      if (!reduce::CanReduce(t, o)) continue;
      for (const Collective collective : {Collective::kReduceScatter, Collective::kReduce}) {
        cases.push_back({collective, t, o, 5003, world_.ranks() - 1, op % 2 == 0});
      }
    }
  }
  RunCases(world_, cases);
}

// One byte less, as many, and one more than every size at which something changes, and from every
// root.
TEST_P(CollectivesTest, EverySizeAtABoundary) {
  std::vector<CollectiveCase> cases;
  const auto ranks = static_cast<size_t>(world_.ranks());
  const size_t slice = 131072 / ranks / 64 * 64;  // of a reduce-scatter
  for (const size_t size : {size_t{1}, size_t{64}, 560 / ranks, size_t{560}, size_t{8192}, slice,
                            3 * slice, size_t{131072}, 3 * size_t{131072}}) {
    // Large worlds take long for what small ones show as well.
    if (ranks > 5 && size > slice) continue;
    for (const size_t count : {size - 1, size, size + 1}) {
      for (const Collective collective : kCollectives) {
        // All roots of small worlds, and some of large ones.
        const int step = world_.ranks() > 4 ? world_.ranks() - 1 : 1;
        for (int root = 0; root < (HasRoot(collective) ? world_.ranks() : 1); root += step) {
          cases.push_back({collective, rhUint8, rhSum, count, root, count % 2 == 0});
        }
      }
    }
  }
  for (const Collective collective : kCollectives) {
    // Past the caches, and with the largest chunks.
    cases.push_back({collective, rhInt64, rhMax, size_t{524288} + 1, 0, false});
  }
  RunCases(world_, cases);
}

TEST_P(CollectivesTest, AnySuccession) {
  for (const bool naps : {false, true}) {
    std::mt19937 random(20261121);
    std::vector<CollectiveCase> cases;
    for (int i = 0; i < 250; ++i) {
      const size_t largest = size_t{1} << (random() % 19);
      cases.push_back({kCollectives[random() % kCollectives.size()],
                       random() % 2 == 0 ? rhUint16 : rhBfloat16, rhAvg, random() % largest,
                       static_cast<int>(random() % static_cast<unsigned>(world_.ranks())),
                       random() % 2 == 0});
    }
    RunCases(world_, cases, naps);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 8),
                                            ::testing::Values(Setting::kRoomy, Setting::kCrowded,
                                                              Setting::kWindows)));

// Windows that come and go, and one that not all ranks' buffers are in.
TEST(WindowsTest, MayBeOpenedAndClosedBetweenCollectives) {
  World world(3, true);
  std::vector<CollectiveCase> cases;
  for (const Collective collective : kCollectives) {
    for (const bool in_place : {false, true}) {
      cases.push_back({collective, rhFloat32, rhSum, 50001, 1, in_place});
    }
  }
  for (int round = 0; round < 6; ++round) {
    world.OpenWindows(round % 2 == 0);
    RunCases(world, cases);
    world.CloseWindows();
    RunCases(world, cases);
  }
}

// On a busy machine the other rank may be late as well, and is named beside it.
TEST(CollectivesErrors, WhoDoesNotComeIsNamed) {
  for (const Collective collective : kCollectives) {
    World world(3, false);
    // More than a rank that waits for nobody has cells for.
    const CollectiveCase c = {collective, rhInt32, rhSum, 600000, 2, false};
    const auto results = RunRanks(3, [&](int rank) {
      if (rank == 2) return absl::OkStatus();
      Trial trial(c, rank, 3, 1);
      return Do(world, rank, c, trial, {absl::ZeroDuration(), absl::Milliseconds(100), nullptr});
    });
    for (size_t rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(results[rank])) << ToString(c) << results[rank];
      EXPECT_THAT(std::string(results[rank].message()),
                  AnyOf(HasSubstr("rank 2 (1 chunks"), HasSubstr("rank 2 has ")));
    }
  }
}

TEST(BarrierTest, NobodyPassesABarrierBeforeAllHaveCome) {
  constexpr int kRounds = 200;
  World world(4, true);
  std::array<std::atomic<int>, 4> rounds{};
  RunRanks(4, [&](int rank) {
    for (int round = 1; round <= kRounds; ++round) {
      rounds[static_cast<size_t>(rank)] = round;
      EXPECT_TRUE(world.at(rank).Barrier(world.patience()).ok());
      for (const std::atomic<int>& other : rounds) EXPECT_GE(other, round);
    }
    return true;
  });
}

TEST(MailboxTest, WhatComesWhileAllAreAskedIsNotLate) {
  World world(2, false);
  std::byte sent{7};
  std::byte got{0};
  const std::function<bool()> go_on = [&] {
    world.mailbox(1).PostSend(0, {&sent, 1});
    EXPECT_EQ(*world.mailbox(1).Poll(), true);
    return false;
  };
  Patience patience{absl::ZeroDuration(), absl::Milliseconds(20)};
  patience.go_on = &go_on;
  world.mailbox(0).PostReceive(1, {&got, 1});
  world.mailbox(0).Begin(patience);
  const absl::Status status = world.mailbox(0).Progress();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, sent);
}

// Messages of two parts that leave at once, or, where that is refused, are posted as two messages,
// of which the second has a receive.
void ExpectJoined(int ranks, unsigned seed) {
  World world(ranks, false);
  Mailbox& from = world.mailbox(0);
  Mailbox& to = world.mailbox(1);
  std::mt19937 random(seed);
  constexpr size_t kHead = 40;
  constexpr size_t kMessages = 300;
  struct Message {
    std::vector<std::byte> bytes;
    bool joined = false;
  };
  std::deque<Message> messages;  // that the mailbox reads from
  size_t at_once = 0;
  size_t received = 0;
  const auto move = [&] {
    ASSERT_TRUE(from.Poll().ok());
    ASSERT_TRUE(to.Poll().ok());
  };
  uint64_t posted = 0;
  const auto take = [&] {
    const Message& message = messages[received++];
    const auto all = absl::MakeConstSpan(message.bytes);
    for (int looks = 0; to.Arrived(0)->data() == nullptr; ++looks) {
      ASSERT_LT(looks, 100);
      move();
    }
    ASSERT_EQ(*to.Poll(), true) << "it has not been taken";
    ASSERT_EQ(*to.Arrived(0), message.joined ? all : all.first(kHead)) << received;
    to.Take(0);
    if (message.joined) return;
    std::vector<std::byte> rest(message.bytes.size() - kHead);
    to.PostReceive(0, {rest.data(), rest.size()});
    for (int looks = 0; !to.ReceiveDone(0, posted); ++looks) {
      ASSERT_LT(looks, 100);
      move();
    }
    ++posted;
    ASSERT_EQ(absl::MakeConstSpan(rest), all.subspan(kHead)) << received;
  };
  while (messages.size() < kMessages) {
    Message& message = messages.emplace_back();
    message.bytes.resize(kHead + 1 + random() % 2048);
    for (std::byte& byte : message.bytes) byte = static_cast<std::byte>(random());
    const auto all = absl::MakeConstSpan(message.bytes);
    message.joined = from.SendJoined(1, all.first(kHead), all.subspan(kHead));
    if (message.joined) {
      ++at_once;
    } else {
      from.PostSend(1, all.first(kHead));
      from.PostSend(1, all.subspan(kHead));
    }
    while (received < messages.size() && random() % 3 == 0) take();
  }
  while (received < messages.size()) take();
  EXPECT_GT(at_once, 0U);
  EXPECT_LT(at_once, kMessages);
  EXPECT_EQ(from.progress(1), to.progress(0));
}
TEST(MailboxTest, JoinedMessagesComeWholeAndInOrder) {
  for (unsigned seed = 0; seed < 10; ++seed) ExpectJoined(2, seed);
  ExpectJoined(60, 10);  // slots smaller than some messages
}

TEST(MailboxTest, AMessageLongerThanItsReceiveIsRefused) {
  World world(2, false);
  const std::vector<std::byte> bytes(60);
  std::vector<std::byte> got(100, std::byte{7});
  ASSERT_TRUE(world.mailbox(0).SendJoined(1, bytes, bytes));
  world.mailbox(1).PostReceive(0, {got.data(), 99});
  EXPECT_THAT(std::string(world.mailbox(1).Poll().status().message()),
              HasSubstr("a message of 120 bytes from rank 0 was refused"));
  EXPECT_EQ(got, std::vector<std::byte>(100, std::byte{7}));
}

TEST(MailboxTest, WhatIsTakenWhereItLiesIsOfThisCallAndWhole) {
  for (const bool other_call : {false, true}) {
    World world(2, false);
    const std::vector<std::byte> large(Mailbox::SlotBytes(2) + 1);
    if (other_call) {
      world.mailbox(0).Expect(
          collectives::Call({.collective = collectives::Collective::kSendReceive}));
    }
    world.mailbox(0).PostSend(1, other_call ? absl::MakeConstSpan(large).first(8) : large);
    ASSERT_EQ(*world.mailbox(0).Poll(), true);
    EXPECT_TRUE(absl::IsInternal(world.mailbox(1).Arrived(0).status()));
  }
}

TEST(MailboxTest, WhileAReceiveIsPostedNothingIsTakenWhereItLies) {
  World world(2, false);
  Mailbox& to = world.mailbox(1);
  const std::array<std::byte, 2> sent{std::byte{5}, std::byte{6}};
  const auto all = absl::MakeConstSpan(sent);
  ASSERT_TRUE(world.mailbox(0).SendJoined(1, all.first(1), {}));
  ASSERT_TRUE(world.mailbox(0).SendJoined(1, all.last(1), {}));
  EXPECT_EQ(*to.Poll(), false) << "nobody has asked";
  std::byte got{};
  to.PostReceive(0, {&got, 1});
  EXPECT_EQ(to.Arrived(0)->data(), nullptr);
  EXPECT_EQ(*to.Poll(), true);
  EXPECT_EQ(got, sent[0]);
  EXPECT_EQ(*to.Arrived(0), all.last(1));
  EXPECT_TRUE(to.Waits());
}

// Who waits for something else as well sleeps on a socket, which news of its boxes make readable.
TEST(MailboxTest, ACompanionIsWokenByASocketOnceItIsArmed) {
  World world(3, false);
  Mailbox& sleeper = world.mailbox(0);
  const auto rings = [&] {
    pollfd fd = {sleeper.event_fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  };
  std::byte byte{7};
  const auto send = [&](int rank) {
    world.mailbox(rank).PostSend(0, {&byte, 1});
    ASSERT_EQ(*world.mailbox(rank).Poll(), true);
  };
  send(1);
  EXPECT_EQ(sleeper.event_fd(), -1) << "it is awake";
  std::array<std::byte, 4> got{};
  for (size_t i = 0; i < got.size(); ++i) {
    sleeper.PostReceive(i % 2 == 0 ? 1 : 2, {&got[i], 1});
  }
  EXPECT_EQ(*sleeper.Poll(), true);
  EXPECT_EQ(*sleeper.Poll(), false);
  EXPECT_TRUE(sleeper.Waits());
  ASSERT_TRUE(sleeper.Arm().ok());
  EXPECT_FALSE(rings());
  EXPECT_THAT(sleeper.DescribeProgress(), HasSubstr("rank 2 has given 0 of 1 bytes of message 0"));
  send(2);
  send(1);
  send(2);
  EXPECT_TRUE(rings());
  sleeper.Answer();
  EXPECT_FALSE(rings()) << "of many news the first alone rings";
  EXPECT_EQ(*sleeper.Poll(), true);
  EXPECT_FALSE(sleeper.Waits());
  EXPECT_EQ(sleeper.progress(), 4U);
  EXPECT_EQ(got, (std::array<std::byte, 4>{byte, byte, byte, byte}));
}

}  // namespace
}  // namespace railhead::shm
