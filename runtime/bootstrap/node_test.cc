// SPDX-License-Identifier: Apache-2.0
//
// The tree's conversation among up to 4,096 simulated ranks: the real nodes, connections that keep
// their order as TCP does, and otherwise any order of delivery.
#include "runtime/bootstrap/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {
namespace {

using ::testing::HasSubstr;

class Simulation {
 public:
  Simulation(int world, uint32_t seed) : random_(seed), sent_(static_cast<size_t>(world)) {
    for (int rank = 0; rank < world; ++rank) {
      nodes_.push_back(std::make_unique<Node>(rank, world));
      Node& node = *nodes_.back();
      for (const std::optional<int> above : {Parent(rank), Guardian(rank)}) {
        if (above.has_value()) node.AttachUp(*above);
      }
      for (const int child : Children(rank, world)) node.AttachDown(child);
      for (const int grandchild : Grandchildren(rank, world)) node.AttachDown(grandchild);
    }
  }

  int world() const { return static_cast<int>(nodes_.size()); }
  bool Lives(int rank) const { return nodes_[Index(rank)] != nullptr; }
  const Node& At(int rank) const { return *nodes_[Index(rank)]; }

  // Messages that the rank has sent and received since the last call.
  size_t TakeCount(int rank) { return std::exchange(sent_[Index(rank)], 0); }

  // Something happens at a rank, and what it has to say goes on its way.
  void Do(int rank, const std::function<void(Node&)>& what) {
    if (!Lives(rank)) return;
    what(*nodes_[Index(rank)]);
    for (Node::Outgoing& message : nodes_[Index(rank)]->TakeOutgoing()) {
      ++sent_[Index(rank)];
      Push(rank, {message.to, message.kind, std::move(message.payload)});
    }
  }

  // The rank ends; what it has sent still arrives, and then the end of its connections.
  void Kill(int rank) {
    if (!Lives(rank)) return;
    nodes_[Index(rank)].reset();
    std::vector<int> neighbours = Children(rank, world());
    const std::vector<int> grandchildren = Grandchildren(rank, world());
    neighbours.insert(neighbours.end(), grandchildren.begin(), grandchildren.end());
    for (const std::optional<int> above : {Parent(rank), Guardian(rank)}) {
      if (above.has_value()) neighbours.push_back(*above);
    }
    for (const int neighbour : neighbours) Push(rank, {neighbour, std::nullopt, nullptr});
  }

  // The rank takes nothing in any more, but its connections stay.
  void Stop(int rank) { stopped_.insert(rank); }
  // It goes on with what has come meanwhile.
  void Continue(int rank) {
    stopped_.erase(rank);
    for (const auto& [way, queue] : ways_) {
      if (way.second == rank) ready_.insert(ready_.end(), queue.size(), way);
    }
  }

  // Delivers one message of a connection drawn at random; false when all is quiet.
  bool Deliver() {
    while (!ready_.empty()) {
      const size_t drawn = random_() % ready_.size();
      std::swap(ready_[drawn], ready_.back());
      const std::pair<int, int> way = ready_.back();
      std::deque<Message>& queue = ways_[way];
      if (queue.empty() || stopped_.count(way.second) > 0) {
        ready_.pop_back();
        continue;
      }
      const Message message = std::move(queue.front());
      queue.pop_front();
      if (!Lives(way.second)) continue;
      ++sent_[Index(way.second)];
      Do(way.second, [&](Node& node) {
        if (message.kind.has_value()) {
          if (on_delivery) on_delivery(way.second, *message.kind, *message.payload);
          node.Receive(way.first, *message.kind, *message.payload);
        } else {
          node.Lost(way.first);
        }
      });
      if (after_delivery) after_delivery(way.second);
      return true;
    }
    return false;
  }

  // Called with the rank after each delivery, and before it with what comes.
  std::function<void(int rank)> after_delivery;
  std::function<void(int rank, FrameKind kind, absl::string_view payload)> on_delivery;

  // Takes a result, so that 4,096 ranks need not hold 4,096 parts each.
  std::optional<Node::Result> TakeResult(int rank) {
    return Lives(rank) ? nodes_[Index(rank)]->TakeResult() : std::nullopt;
  }

 private:
  struct Message {
    int to = 0;
    std::optional<FrameKind> kind;  // without: the end of the connection
    std::shared_ptr<const std::string> payload;
  };

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  void Push(int from, Message message) {
    const std::pair<int, int> way = {from, message.to};
    std::deque<Message>& queue = ways_[way];
    queue.push_back(std::move(message));
    ready_.push_back(way);  // as often as the way has messages
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<size_t> sent_;
  std::map<std::pair<int, int>, std::deque<Message>> ways_;
  std::vector<std::pair<int, int>> ready_;
  std::set<int> stopped_;
};

std::string PartOf(int rank, int round) {
  return absl::StrCat(rank, ".", round, std::string(static_cast<size_t>(rank % 3), 'x'));
}

// Everybody's parts for all, and in odd rounds something for each.
Node::Decide DecideOf(int round) {
  return [round](std::vector<std::string> parts) -> absl::StatusOr<Node::Answer> {
    Node::Answer answer;
    for (const std::string& part : parts) {
      if (round % 2 == 1) answer.for_each.push_back(absl::StrCat("for ", part));
    }
    answer.for_all = EncodeParts({0, std::move(parts)});
    return answer;
  };
}

void Give(Node& node, int round) { node.Give(PartOf(node.rank(), round), DecideOf(round)); }

// Lets every rank give its part, in random order among the deliveries, and checks what all get.
void Exchange(Simulation& simulation, int round, std::mt19937& random) {
  const int world = simulation.world();
  std::vector<int> order(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) order[static_cast<size_t>(rank)] = rank;
  std::shuffle(order.begin(), order.end(), random);
  int through = 0;
  const auto check = [&](int rank) {
    const std::optional<Node::Result> result = simulation.TakeResult(rank);
    if (!result.has_value()) return;
    ++through;
    const absl::StatusOr<Parts> all = ParseParts(result->for_all, static_cast<size_t>(world));
    ASSERT_TRUE(all.ok());
    bool right = true;
    for (int r = 0; r < world; ++r) {
      right = right && all->parts[static_cast<size_t>(r)] == PartOf(r, round);
    }
    ASSERT_TRUE(right) << "rank " << rank;
    ASSERT_EQ(result->for_this, round % 2 == 1 ? absl::StrCat("for ", PartOf(rank, round)) : "");
  };
  simulation.after_delivery = check;
  for (const int rank : order) {
    simulation.Do(rank, [&](Node& node) { Give(node, round); });
    check(rank);
    if (random() % 2 == 0) simulation.Deliver();
  }
  while (simulation.Deliver()) {
  }
  simulation.after_delivery = nullptr;
  EXPECT_EQ(through, world);
}

class NodeSizeTest : public ::testing::TestWithParam<int> {};

TEST_P(NodeSizeTest, EverybodyGetsWhatEverybodyGaveForFewMessages) {
  const int world = GetParam();
  std::mt19937 random(7);
  Simulation simulation(world, 11);
  for (int round = 0; round < (world > 1000 ? 1 : 3); ++round) {
    Exchange(simulation, round, random);
    size_t most = 0;
    for (int rank = 0; rank < world; ++rank) most = std::max(most, simulation.TakeCount(rank));
    // One to and one from the parent and each child, however many ranks there are.
    EXPECT_LE(most, 2U * (kArity + 1));
    EXPECT_LE(static_cast<double>(most), 5.0 * std::max(1.0, std::log2(world)));
  }
}

TEST_P(NodeSizeTest, AnAnswerForEachIsCarriedByThoseAboveItAlone) {
  const int world = GetParam();
  Simulation simulation(world, 11);
  std::map<int, size_t> bytes;  // received
  simulation.on_delivery = [&](int rank, FrameKind kind, absl::string_view payload) {
    if (kind == FrameKind::kAll) bytes[rank] += payload.size();
  };
  constexpr size_t kEach = 100;
  const auto decide = [](const std::vector<std::string>& parts) -> absl::StatusOr<Node::Answer> {
    return Node::Answer{"", std::vector<std::string>(parts.size(), std::string(kEach, 'x'))};
  };
  for (int rank = 0; rank < world; ++rank) {
    simulation.Do(rank, [&](Node& node) { node.Give(std::string(), decide); });
  }
  while (simulation.Deliver()) {
  }
  size_t sum = 0;
  for (const auto& [rank, count] : bytes) {
    EXPECT_LE(count, Subtree(rank, world).size() * (kEach + 4) + 12) << rank;
    sum += count;
  }
  // So a rank carries as many on average as there are steps to the root.
  EXPECT_LE(sum, static_cast<size_t>(world) * (static_cast<size_t>(Height(0, world)) * 104 + 12));
}

TEST_P(NodeSizeTest, WhoIsLookedForIsFoundAlongTheTree) {
  const int world = GetParam();
  std::mt19937 random(17);
  Simulation simulation(world, 19);
  for (int rank = 0; rank < world; ++rank) {
    simulation.Do(rank, [](Node& node) { node.SetPlace(absl::StrCat("at ", node.rank())); });
    simulation.TakeCount(rank);
  }
  for (int trial = 0; world > 1 && trial < 200; ++trial) {
    const int asker = static_cast<int>(random() % static_cast<uint32_t>(world));
    const int rank =
        (asker + 1 + static_cast<int>(random() % static_cast<uint32_t>(world - 1))) % world;
    std::map<int, std::string> located;
    size_t messages = 0;
    simulation.on_delivery = [&](int, FrameKind, absl::string_view) { ++messages; };
    simulation.Do(asker, [rank](Node& node) { node.Locate(rank); });
    while (simulation.Deliver()) {
    }
    simulation.Do(asker, [&](Node& node) { located = node.TakeLocated(); });
    EXPECT_EQ(located, (std::map<int, std::string>{{rank, absl::StrCat("at ", rank)}}));
    EXPECT_LE(messages, static_cast<size_t>(4 * Height(0, world)));
  }
}

TEST_P(NodeSizeTest, GoodbyesTakeFewMessages) {
  const int world = GetParam();
  std::mt19937 random(7);
  Simulation simulation(world, 11);
  std::vector<int> order(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) order[static_cast<size_t>(rank)] = rank;
  std::shuffle(order.begin(), order.end(), random);
  for (const int rank : order) {
    for (int other = 0; other < world; other += world / 7 + 1) {
      EXPECT_FALSE(simulation.At(other).everybody_left());
    }
    simulation.Do(rank, [](Node& node) { node.Goodbye(); });
    if (random() % 2 == 0) simulation.Deliver();
  }
  while (simulation.Deliver()) {
  }
  for (int rank = 0; rank < world; ++rank) {
    EXPECT_TRUE(simulation.At(rank).everybody_left());
    EXPECT_TRUE(simulation.At(rank).verdict().ok());
    // With each of at most 4 + 16 + 2 neighbours: its goodbye, and that everybody has said so.
    EXPECT_LE(simulation.TakeCount(rank), 4U * (kArity + kArity * kArity + 2));
  }
}

TEST_P(NodeSizeTest, OneVerdictOfManyFailures) {
  const int world = GetParam();
  std::mt19937 random(3);
  Simulation simulation(world, 5);
  for (int i = 0; i < 20; ++i) {
    const int rank = static_cast<int>(random() % static_cast<uint32_t>(world));
    simulation.Do(rank, [&](Node& node) {
      node.Report(absl::InternalError(absl::StrCat("rank ", rank, " failed")));
    });
    for (int k = 0; k < i; ++k) simulation.Deliver();
  }
  while (simulation.Deliver()) {
  }
  EXPECT_FALSE(simulation.At(0).verdict().ok());
  for (int rank = 0; rank < world; ++rank) {
    EXPECT_EQ(simulation.At(rank).verdict(), simulation.At(0).verdict());
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, NodeSizeTest,
                         ::testing::Values(1, 2, 3, 5, 6, 21, 22, 64, 100, 256, 1000, 4096));

TEST(NodeDeathTest, WhoeverDiesWheneverAllOthersSayTheSame) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 400; ++trial) {
    const int world = 2 + static_cast<int>(random() % 120);
    const int victim = static_cast<int>(random() % static_cast<uint32_t>(world));
    Simulation simulation(world, random());
    // In the middle of an exchange, of which it may have given its part or not.
    const int moment = static_cast<int>(random() % static_cast<uint32_t>(2 * world + 2));
    for (int rank = 0; rank < world; ++rank) {
      if (rank == moment) simulation.Kill(victim);
      simulation.Do(rank, [](Node& node) { Give(node, 0); });
      if (random() % 2 == 0) simulation.Deliver();
    }
    for (int rank = world; rank < moment; ++rank) simulation.Deliver();
    simulation.Kill(victim);
    while (simulation.Deliver()) {
    }
    const std::string expected =
        absl::StrCat("rank ", victim, " is gone: its connection was closed");
    for (int rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(std::string(simulation.At(rank).verdict().message()), expected)
          << "rank " << rank << " of " << world << ", trial " << trial;
    }
  }
}

TEST(NodeDeathTest, ADeathAndWhatItCausesHaveOneVerdict) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 200; ++trial) {
    const int world = 3 + static_cast<int>(random() % 120);
    // Not rank 0: without it nobody can say who was first.
    const int victim = 1 + static_cast<int>(random() % static_cast<uint32_t>(world - 1));
    Simulation simulation(world, random());
    simulation.Kill(victim);
    for (int i = 0; i < 10; ++i) {
      const int rank = static_cast<int>(random() % static_cast<uint32_t>(world));
      simulation.Do(rank, [&](Node& node) {
        node.Report(absl::UnavailableError(absl::StrCat("rank ", rank, " lost a rail")));
      });
      if (random() % 2 == 0) simulation.Deliver();
    }
    while (simulation.Deliver()) {
    }
    for (int rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      ASSERT_FALSE(simulation.At(rank).verdict().ok());
      ASSERT_EQ(simulation.At(rank).verdict(), simulation.At(0).verdict())
          << "rank " << rank << " of " << world << ", trial " << trial;
    }
  }
}

TEST(NodeDeathTest, SeveralDeathsLeaveNobodyWithoutAVerdict) {
  std::mt19937 random(19);
  for (int trial = 0; trial < 200; ++trial) {
    const int world = 2 + static_cast<int>(random() % 200);
    Simulation simulation(world, random());
    for (int i = 0; i < 6; ++i) {
      simulation.Kill(static_cast<int>(random() % static_cast<uint32_t>(world)));
      if (random() % 2 == 0) simulation.Deliver();
    }
    while (simulation.Deliver()) {
    }
    for (int rank = 0; rank < world; ++rank) {
      if (!simulation.Lives(rank)) continue;
      ASSERT_THAT(std::string(simulation.At(rank).verdict().message()), HasSubstr("is gone"))
          << "rank " << rank << " of " << world << ", trial " << trial;
    }
  }
}

TEST(NodeDeathTest, WhoLeavesEarlyHasNotDiedAndTheOthersStillPart) {
  std::mt19937 random(23);
  for (int trial = 0; trial < 200; ++trial) {
    const int world = 2 + static_cast<int>(random() % 100);
    const int first = static_cast<int>(random() % static_cast<uint32_t>(world));
    Simulation simulation(world, random());
    simulation.Do(first, [](Node& node) { node.Goodbye(); });
    if (random() % 2 == 0) simulation.Deliver();
    simulation.Kill(first);
    for (int rank = 0; rank < world; ++rank) {
      simulation.Do(rank, [](Node& node) { node.Goodbye(); });
      if (random() % 2 == 0) simulation.Deliver();
    }
    while (simulation.Deliver()) {
    }
    for (int rank = 0; rank < world; ++rank) {
      if (rank == first) continue;
      ASSERT_TRUE(simulation.At(rank).verdict().ok()) << simulation.At(rank).verdict();
      // Without the root there is nobody to tell all; their goodbyes end at the deadline.
      ASSERT_TRUE(first == 0 || simulation.At(rank).everybody_left()) << trial;
    }
  }
}

// The connection to a rank that has left may end before its goodbye has arrived, if the network
// failed; others have passed on that it has left.
TEST(NodeDeathTest, WhereAllHaveLeftALostConnectionIsNoDeath) {
  for (const int rank : {1, 5}) {
    Node node(rank, 8);
    node.AttachUp(0);
    if (rank == 5) node.AttachUp(1);
    node.Goodbye();
    for (const int child : Children(rank, 8)) {
      node.AttachDown(child);
      node.Receive(child, FrameKind::kBye, "");
      node.Receive(child, FrameKind::kDone, "");
    }
    node.Receive(0, FrameKind::kDone, "");
    ASSERT_TRUE(node.everybody_left());
    node.Lost(rank == 5 ? 1 : 0);
    EXPECT_TRUE(node.verdict().ok()) << node.verdict();
    EXPECT_TRUE(node.reported().ok()) << node.reported();
    node.Receive(rank == 5 ? 0 : 6, FrameKind::kFail,
                 EncodeFailure(absl::UnavailableError("rank 1 is gone")));
    EXPECT_TRUE(node.verdict().ok()) << node.verdict();
    EXPECT_TRUE(node.reported().ok()) << node.reported();
  }
}

TEST(NodeDeathTest, AGrandchildHasLeftWhereItsParentSaysThatAllBelowHave) {
  for (const bool done : {false, true}) {
    Node root(0, 8);
    for (int rank = 1; rank < 8; ++rank) root.AttachDown(rank);
    root.Receive(1, FrameKind::kBye, "");
    if (done) root.Receive(1, FrameKind::kDone, "");
    root.Lost(5);
    EXPECT_EQ(root.verdict().ok(), done) << root.verdict();
    // A child of another rank.
    Node other(0, 12);
    for (int rank = 1; rank < 12; ++rank) other.AttachDown(rank);
    other.Receive(1, FrameKind::kBye, "");
    other.Receive(1, FrameKind::kDone, "");
    other.Lost(9);
    EXPECT_FALSE(other.verdict().ok());
  }
}

// Those below both are cut off: nobody waits for them, and they wait for nobody.
TEST(NodeDeathTest, WhereARankAndItsParentLeaveEarlyTheOthersStillPart) {
  std::mt19937 random(29);
  for (int trial = 0; trial < 400; ++trial) {
    const int world = 2 + static_cast<int>(random() % 100);
    const int below = 1 + static_cast<int>(random() % static_cast<uint32_t>(world - 1));
    std::vector<int> leavers = {below, *Parent(below)};
    if (random() % 2 == 0) std::swap(leavers[0], leavers[1]);
    std::vector<int> others;
    for (int rank = 0; rank < world; ++rank) {
      if (rank != leavers[0] && rank != leavers[1]) others.push_back(rank);
    }
    std::shuffle(others.begin(), others.end(), random);
    // So many of the others go before the two end.
    const size_t before = random() % 2 == 0 ? 0 : random() % (others.size() + 1);
    Simulation simulation(world, random());
    const auto goodbye = [&](int rank) {
      simulation.Do(rank, [](Node& node) { node.Goodbye(); });
      for (uint32_t i = random() % 4; i > 0; --i) simulation.Deliver();
    };
    for (const int rank : leavers) goodbye(rank);
    for (size_t i = 0; i < before; ++i) goodbye(others[i]);
    for (const int rank : leavers) {
      simulation.Kill(rank);
      for (uint32_t i = random() % 4; i > 0; --i) simulation.Deliver();
    }
    for (size_t i = before; i < others.size(); ++i) goodbye(others[i]);
    while (simulation.Deliver()) {
    }
    for (const int rank : others) {
      ASSERT_TRUE(simulation.At(rank).verdict().ok()) << simulation.At(rank).verdict();
      ASSERT_TRUE(simulation.At(rank).everybody_left())
          << "rank " << rank << " of " << world << " without " << leavers[0] << " and "
          << leavers[1] << ", trial " << trial;
    }
  }
}

// Everybody who is left finds everybody who is left, past one that has left.
TEST(NodeLocateTest, OneThatHasLeftHidesNobody) {
  for (const int world : {6, 22, 40, 90}) {
    for (int leaver = 0; leaver < world; leaver += world / 11 + 1) {
      Simulation simulation(world, static_cast<uint32_t>(leaver));
      for (int rank = 0; rank < world; ++rank) {
        simulation.Do(rank, [](Node& node) { node.SetPlace(absl::StrCat("at ", node.rank())); });
      }
      simulation.Do(leaver, [](Node& node) { node.Goodbye(); });
      while (simulation.Deliver()) {
      }
      simulation.Kill(leaver);
      while (simulation.Deliver()) {
      }
      for (int asker = 0; asker < world; ++asker) {
        // The root joins the parts of the tree.
        if (asker == leaver || leaver == 0) continue;
        std::map<int, std::string> located;
        simulation.Do(asker, [&](Node& node) {
          for (int rank = 0; rank < world; ++rank) {
            if (rank != asker) node.Locate(rank);
          }
        });
        while (simulation.Deliver()) {
        }
        simulation.Do(asker, [&](Node& node) { located = node.TakeLocated(); });
        ASSERT_EQ(located.size(), static_cast<size_t>(world - 2))
            << "rank " << asker << " of " << world << " without " << leaver;
      }
    }
  }
}

TEST(NodeAskTest, WhoStandsStillIsNamedWhereverItIs) {
  for (const int world : {2, 6, 22, 60}) {
    for (int victim = 1; victim < world; ++victim) {
      Simulation simulation(world, static_cast<uint32_t>(victim));
      simulation.Stop(victim);
      for (int rank = 0; rank < world; ++rank) {
        if (rank == victim) continue;
        simulation.Do(rank, [](Node& node) { Give(node, 0); });
      }
      while (simulation.Deliver()) {
      }
      simulation.Do(0, [](Node& node) { node.AskWhoIsMissing(); });
      while (simulation.Deliver()) {
      }
      simulation.Do(0, [](Node& node) { node.JudgeMissing(); });
      while (simulation.Deliver()) {
      }
      for (int rank = 0; rank < world; ++rank) {
        if (rank == victim) continue;
        EXPECT_EQ(std::string(simulation.At(rank).verdict().message()),
                  absl::StrCat("rank ", victim, " did not answer in time while the job was set up"))
            << "rank " << rank << " of " << world;
      }
    }
  }
}

TEST(NodeDeathTest, AFailureIsToldAroundARankThatStandsStill) {
  constexpr int kWorld = 100;
  for (int still = 1; still < kWorld; ++still) {
    for (int culprit = 1; culprit < kWorld; culprit += 7) {
      if (culprit == still) continue;
      Simulation simulation(kWorld, static_cast<uint32_t>(still));
      simulation.Stop(still);
      const absl::Status failure = absl::InternalError(absl::StrCat("rank ", culprit, " failed"));
      simulation.Do(culprit, [&](Node& node) { node.Report(failure); });
      while (simulation.Deliver()) {
      }
      for (int rank = 0; rank < kWorld; ++rank) {
        ASSERT_TRUE(rank == still || simulation.At(rank).verdict() == failure) << rank;
      }
    }
  }
}

// ---- Inquiries ----

std::string PlaceOf(int rank) { return absl::StrCat("number ", 7 * rank); }

// Lets ranks answer as they are asked until all is quiet, and takes the reports that they hear.
void Answer(Simulation& simulation, std::map<int, std::string>* heard = nullptr) {
  simulation.after_delivery = [&](int rank) {
    simulation.Do(rank, [&](Node& node) {
      if (node.inquiry().asked()) node.inquiry().Testify(PlaceOf(rank));
      const std::optional<std::string> report = node.inquiry().TakeReport();
      if (report.has_value() && heard != nullptr) (*heard)[rank] = *report;
    });
  };
  while (simulation.Deliver()) {
  }
  simulation.after_delivery = nullptr;
}

// Time passes: whoever still waits for answers gives up, those furthest down first.
void Hurry(Simulation& simulation) {
  for (int rank = simulation.world() - 1; rank >= 0; --rank) {
    simulation.Do(rank, [](Node& node) { node.inquiry().Hurry(); });
    Answer(simulation);
  }
}

// The rank asks, and testifies itself.
void Ask(Simulation& simulation, int rank) {
  simulation.Do(rank, [&](Node& node) {
    node.inquiry().Ask();
    node.inquiry().Testify(PlaceOf(rank));
  });
}

std::vector<Inquiry::Answer> TakeAnswers(Simulation& simulation, int rank) {
  std::vector<Inquiry::Answer> answers;
  simulation.Do(rank, [&](Node& node) {
    answers = node.inquiry().TakeAnswers().value_or(std::vector<Inquiry::Answer>());
  });
  return answers;
}

using How = Inquiry::Answer::How;

TEST_P(NodeSizeTest, AnInquiryFindsAllForFewMessagesWhoeverCalls) {
  const int world = GetParam();
  std::mt19937 random(7);
  Simulation simulation(world, 11);
  std::vector<int> order(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) order[static_cast<size_t>(rank)] = rank;
  std::shuffle(order.begin(), order.end(), random);
  for (const int rank : order) {
    simulation.Do(rank, [](Node& node) { node.inquiry().Call(); });
    if (random() % 2 == 0) simulation.Deliver();
  }
  Answer(simulation);
  simulation.Do(0, [](Node& node) { EXPECT_TRUE(node.inquiry().called()); });
  Ask(simulation, 0);
  Answer(simulation);
  const std::vector<Inquiry::Answer> answers = TakeAnswers(simulation, 0);
  ASSERT_EQ(answers.size(), static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    ASSERT_EQ(answers[static_cast<size_t>(rank)].how, How::kGiven) << rank;
    ASSERT_EQ(answers[static_cast<size_t>(rank)].text, PlaceOf(rank));
  }
  std::map<int, std::string> heard;
  simulation.Do(0, [&](Node& node) {
    node.inquiry().Tell("all are there");
    heard[0] = node.inquiry().TakeReport().value_or("");
  });
  Answer(simulation, &heard);
  ASSERT_EQ(heard.size(), static_cast<size_t>(world));
  for (const auto& [rank, report] : heard) ASSERT_EQ(report, "all are there") << rank;
  // Calls after the report are for nothing.
  for (const int rank : order) {
    simulation.Do(rank, [](Node& node) { node.inquiry().Call(); });
  }
  Answer(simulation);
  simulation.Do(0, [](Node& node) { EXPECT_FALSE(node.inquiry().called()); });
  for (int rank = 0; rank < world; ++rank) {
    // With each of at most 4 + 16 + 2 neighbours: a call, a question, an answer, a report.
    EXPECT_LE(simulation.TakeCount(rank), 4U * (kArity + kArity * kArity + 2));
  }
}

TEST(NodeInquiryTest, ACallThatComesTooSoonAfterAReportIsMadeLater) {
  Simulation simulation(6, 1);
  const auto tell = [&] {
    Ask(simulation, 0);
    Answer(simulation);
    simulation.Do(0, [](Node& node) { node.inquiry().Tell("all are there"); });
    Answer(simulation);
  };
  const auto reopen = [&](int rank) {
    simulation.Do(rank, [](Node& node) { node.inquiry().Reopen(); });
    Answer(simulation);
  };
  const auto called = [&](int rank) {
    bool is_called = false;
    simulation.Do(rank, [&](Node& node) { is_called = node.inquiry().called(); });
    return is_called;
  };
  tell();
  // Of the call of rank 5, both ranks above it are silent still.
  reopen(5);
  simulation.Do(5, [](Node& node) { node.inquiry().Call(); });
  Answer(simulation);
  EXPECT_FALSE(called(0));
  reopen(0);
  EXPECT_TRUE(called(0));
  // The report that follows answers it wherever it was kept.
  tell();
  for (int rank = 0; rank < 6; ++rank) {
    reopen(rank);
    EXPECT_FALSE(called(rank)) << rank;
  }
}

TEST(NodeInquiryTest, WhoIsStoppedIsFoundWhereverItIsAndHidesNobody) {
  for (const int world : {2, 6, 22, 60}) {
    for (int victim = 1; victim < world; ++victim) {
      Simulation simulation(world, static_cast<uint32_t>(victim));
      simulation.Stop(victim);
      Ask(simulation, 0);
      Answer(simulation);
      Hurry(simulation);
      const std::vector<Inquiry::Answer> answers = TakeAnswers(simulation, 0);
      ASSERT_EQ(answers.size(), static_cast<size_t>(world));
      for (int rank = 0; rank < world; ++rank) {
        ASSERT_EQ(answers[static_cast<size_t>(rank)].how,
                  rank == victim ? How::kSilent : How::kGiven)
            << "rank " << rank << " of " << world << ", " << victim << " is stopped";
      }
      std::map<int, std::string> heard;
      simulation.Do(0, [&](Node& node) { node.inquiry().Tell("one is stopped"); });
      Answer(simulation, &heard);
      EXPECT_EQ(heard.size() + 2, static_cast<size_t>(world));  // without rank 0 and the victim
    }
  }
}

// A machine is busy, so the rank answers each query, but only when nobody waits for it any longer.
TEST(NodeInquiryTest, WhoAlwaysAnswersTooLateIsFoundByTheNextQuery) {
  for (const int world : {2, 6, 22, 100}) {
    for (int late = 1; late < world; ++late) {
      Simulation simulation(world, static_cast<uint32_t>(late));
      for (int query = 1; query <= 3; ++query) {
        simulation.Stop(late);
        Ask(simulation, 0);
        Answer(simulation);
        Hurry(simulation);
        const std::vector<Inquiry::Answer> answers = TakeAnswers(simulation, 0);
        ASSERT_EQ(answers.size(), static_cast<size_t>(world));
        for (int rank = 0; rank < world; ++rank) {
          ASSERT_EQ(answers[static_cast<size_t>(rank)].how,
                    rank == late && query == 1 ? How::kSilent : How::kGiven)
              << rank << " of " << world << ", " << late << " is late, query " << query;
        }
        simulation.Continue(late);
        Answer(simulation);
        Hurry(simulation);
        // It is not taken for the answer of another rank, nor twice.
        EXPECT_TRUE(TakeAnswers(simulation, 0).empty());
      }
      simulation.Stop(late);
      for (int query = 1; query <= 2; ++query) {
        Ask(simulation, 0);
        Answer(simulation);
        Hurry(simulation);
        EXPECT_EQ(TakeAnswers(simulation, 0)[static_cast<size_t>(late)].how,
                  query == 1 ? How::kGiven : How::kSilent)
            << late << " of " << world;
      }
    }
  }
}

TEST(NodeInquiryTest, WhoHasLeftIsNotMissedWhereverItWas) {
  for (const int world : {2, 6, 22, 60}) {
    for (int left = 1; left < world; ++left) {
      Simulation simulation(world, static_cast<uint32_t>(left));
      simulation.Do(left, [](Node& node) { node.Goodbye(); });
      Answer(simulation);
      // It ends before the inquiry, or while it goes on.
      if (left % 2 == 0) {
        simulation.Kill(left);
        Answer(simulation);
      }
      Ask(simulation, 0);
      simulation.Kill(left);
      // Nobody has to give up.
      Answer(simulation);
      const std::vector<Inquiry::Answer> answers = TakeAnswers(simulation, 0);
      ASSERT_EQ(answers.size(), static_cast<size_t>(world));
      for (int rank = 0; rank < world; ++rank) {
        ASSERT_EQ(answers[static_cast<size_t>(rank)].how, rank == left ? How::kLeft : How::kGiven)
            << "rank " << rank << " of " << world << ", " << left << " has left";
      }
    }
  }
}

TEST(NodeInquiryTest, WhoIsBehindTwoThatAreStoppedIsNotAskedAndAsksItself) {
  constexpr int kWorld = 100;  // 22 to 25 are below 5, which is below 1
  Simulation simulation(kWorld, 1);
  simulation.Stop(1);
  simulation.Stop(5);
  simulation.Do(22, [](Node& node) {
    node.inquiry().Call();
    EXPECT_TRUE(node.inquiry().called());
  });
  Answer(simulation);
  Ask(simulation, 0);
  Answer(simulation);
  Hurry(simulation);
  std::vector<Inquiry::Answer> answers = TakeAnswers(simulation, 0);
  ASSERT_EQ(answers.size(), static_cast<size_t>(kWorld));
  for (int rank = 0; rank < kWorld; ++rank) {
    const bool cut_off = IsAbove(5, rank);
    EXPECT_EQ(answers[static_cast<size_t>(rank)].how, rank == 1 || rank == 5 ? How::kSilent
                                                      : cut_off              ? How::kNotAsked
                                                                             : How::kGiven)
        << rank;
  }

  Ask(simulation, 22);
  Answer(simulation);
  answers = TakeAnswers(simulation, 22);
  ASSERT_EQ(answers.size(), static_cast<size_t>(kWorld));
  for (int rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(answers[static_cast<size_t>(rank)].how, rank == 1 || rank == 5 ? How::kSilent
                                                      : rank == 22 || IsAbove(22, rank)
                                                          ? How::kGiven
                                                          : How::kNotAsked)
        << rank;
  }
}

TEST(NodeInquiryTest, NonsenseEndsTheJob) {
  const std::vector<std::pair<FrameKind, std::string>> nonsense = {
      {FrameKind::kCall, "x"},
      {FrameKind::kQuestion, EncodeQuestion({0, 1})},  // upwards
      {FrameKind::kReport, EncodeInquiryReport({{0, 1}, "x"})},
      {FrameKind::kTestimony, ""},
      {FrameKind::kTestimony, EncodeTestimony({{0, 1}, {{1, "another's"}}})},
  };
  for (const auto& [kind, payload] : nonsense) {
    Simulation simulation(3, 1);
    simulation.Do(
        0, [&, kind = kind, payload = payload](Node& node) { node.Receive(2, kind, payload); });
    EXPECT_THAT(std::string(simulation.At(0).verdict().message()),
                HasSubstr("rank 2 violated the protocol"));
  }
  Simulation simulation(8, 1);
  simulation.Do(1, [](Node& node) {
    node.Receive(0, FrameKind::kQuestion, EncodeQuestion({2, 1}));
  });
  while (simulation.Deliver()) {
  }
  EXPECT_THAT(std::string(simulation.At(1).verdict().message()),
              HasSubstr("rank 0 violated the protocol: another rank's question"));
}

TEST(NodeNonsenseTest, WhatIsOutOfTurnEndsTheJobWithTheSendersName) {
  const std::vector<std::pair<FrameKind, std::string>> nonsense = {
      {FrameKind::kGather, ""},
      {FrameKind::kGather, EncodeParts({2, {"a"}})},
      {FrameKind::kGather, EncodeParts({1, {"a", "b"}})},
      {FrameKind::kAll, EncodeAnswers({1, "a", {}})},
      {FrameKind::kLocate, "x"},
      {FrameKind::kLocated, EncodeLocation({3, 0, ""})},
      {FrameKind::kAsk, ""},
      {FrameKind::kMissing, "x"},
      {FrameKind::kHello, ""},
  };
  for (const auto& [kind, payload] : nonsense) {
    Simulation simulation(3, 1);
    simulation.Do(
        0, [&, kind = kind, payload = payload](Node& node) { node.Receive(2, kind, payload); });
    EXPECT_THAT(std::string(simulation.At(0).verdict().message()),
                HasSubstr("rank 2 violated the protocol"));
  }
  Simulation simulation(3, 1);
  simulation.Do(0, [&](Node& node) { node.Receive(2, FrameKind::kFail, "x"); });
  EXPECT_THAT(std::string(simulation.At(0).verdict().message()), HasSubstr("malformed"));
}

TEST(NodeWaitTest, WhoGetsNoVerdictJudgesByWhatItReported) {
  Simulation simulation(3, 1);
  simulation.Stop(0);
  simulation.Do(2, [](Node& node) { node.Report(absl::InternalError("rail 1 is down")); });
  while (simulation.Deliver()) {
  }
  EXPECT_TRUE(simulation.At(2).verdict().ok());
  simulation.Do(2, [](Node& node) { node.StopWaiting(absl::InternalError("in vain")); });
  EXPECT_EQ(simulation.At(2).verdict(), absl::InternalError("rail 1 is down"));
}

TEST(MessagesTest, TheyTravelAndBrokenOnesAreRefused) {
  const net::SocketAddress place{*net::IpAddress::Parse("10.1.2.3"), 4711};
  const Welcome welcome{std::string(32, 's'), place, std::nullopt};
  const absl::StatusOr<Welcome> parsed = ParseWelcome(EncodeWelcome(welcome));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->session, welcome.session);
  EXPECT_EQ(parsed->parent->address, place.address);
  EXPECT_EQ(parsed->parent->port, place.port);
  EXPECT_FALSE(parsed->guardian.has_value());

  const std::string parts = EncodeParts({3, {"a", "", "bc"}});
  EXPECT_EQ(ParseParts(parts, 3)->parts, (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_FALSE(ParseParts(parts, 2).ok());
  EXPECT_FALSE(ParseParts(EncodeParts({3, {}}), size_t{1} << 40).ok());

  const std::string answers = EncodeAnswers({3, "all", {"a", "", "bc"}});
  EXPECT_EQ(ParseAnswers(answers, 3)->for_all, "all");
  EXPECT_EQ(ParseAnswers(answers, 3)->for_each, (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_FALSE(ParseAnswers(answers, 2).ok());
  EXPECT_TRUE(ParseAnswers(EncodeAnswers({3, "all", {}}), 2)->for_each.empty());
  EXPECT_FALSE(ParseAnswers(answers.substr(0, 11) + std::string(4, '\xff'), 0xffffffff).ok());

  const std::string location = EncodeLocation({3, 9, "there"});
  EXPECT_EQ(*ParseLocation(location, 10), (Location{3, 9, "there"}));
  EXPECT_FALSE(ParseLocation(location, 9).ok());

  const std::string missing = EncodeMissing({7, {29, 30}});
  EXPECT_EQ(ParseMissing(missing, 64)->children, (std::vector<int>{29, 30}));
  EXPECT_FALSE(ParseMissing(missing, 30).ok());

  const std::string question = EncodeQuestion({3, 9});
  EXPECT_EQ(*ParseQuestion(question, 4), (Question{3, 9}));
  EXPECT_FALSE(ParseQuestion(question, 3).ok());
  EXPECT_FALSE(ParseQuestion(EncodeQuestion({3, 0}), 4).ok());
  const std::string testimony = EncodeTestimony({{3, 9}, {{13, "a"}, {14, ""}}});
  EXPECT_EQ(ParseTestimony(testimony, 15)->answers,
            (std::map<int, std::string>{{13, "a"}, {14, ""}}));
  EXPECT_FALSE(ParseTestimony(testimony, 14).ok());
  const std::string report = EncodeInquiryReport({{3, 9}, "rank 1 is stopped"});
  EXPECT_EQ(ParseInquiryReport(report, 4)->text, "rank 1 is stopped");
  const auto refuses_others = [](const std::string& bytes, const auto& parse) {
    for (size_t size = 0; size <= bytes.size() + 1; ++size) {
      EXPECT_EQ(parse((bytes + "x").substr(0, size), 64).ok(), size == bytes.size()) << size;
    }
  };
  refuses_others(question, ParseQuestion);
  refuses_others(testimony, ParseTestimony);
  refuses_others(report, ParseInquiryReport);
  refuses_others(location, ParseLocation);
  for (size_t size = 0; size <= answers.size() + 1; ++size) {
    EXPECT_EQ(ParseAnswers((answers + "x").substr(0, size), 3).ok(), size == answers.size());
  }

  const absl::Status failure = absl::NotFoundError("rank 1: nothing there");
  EXPECT_EQ(ParseFailure(EncodeFailure(failure)), failure);
  EXPECT_FALSE(ParseFailure(EncodeFailure(absl::OkStatus())).ok());

  for (const std::string& bytes : {EncodeWelcome(welcome), parts, missing}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      const absl::string_view cut = absl::string_view(bytes).substr(0, size);
      EXPECT_FALSE(ParseWelcome(cut).ok());
      EXPECT_FALSE(ParseParts(cut, 3).ok());
      EXPECT_FALSE(ParseMissing(cut, 64).ok());
    }
    EXPECT_FALSE(ParseWelcome(bytes + "x").ok());
    EXPECT_FALSE(ParseParts(bytes + "x", 3).ok());
    EXPECT_FALSE(ParseMissing(bytes + "x", 64).ok());
  }
}

}  // namespace
}  // namespace railhead::bootstrap
