// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/multiplexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bootstrap/frame.h"

namespace railhead::bootstrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Name(int number) {
  std::string name = absl::StrCat("name ", number);
  name.resize(Multiplexer::kNameSize, '.');
  return name;
}

// One end of a connection: the frames that are on their way to it; nullopt: the connection's end.
struct End {
  int process = 0;
  int connection = 0;  // its number there
  bool open = false;   // its process has begun to read
  bool closed = false;
  std::deque<std::optional<Frame>> incoming;
};

// A tree's connection between two processes.
struct Pair {
  int connection[2] = {0, 0};  // index of its wire's ends
  std::optional<Multiplexer::Channel> channel[2];
  std::vector<std::string> sent[2];
  std::vector<std::string> received[2];
  bool closed[2] = {false, false};
  bool ended[2] = {false, false};  // seen
};

// Processes, and wires between them that keep the order, each in its own time.
class Machines {
 public:
  explicit Machines(int processes, unsigned seed = 1) : random_(seed) {
    for (int i = 0; i < processes; ++i) {
      processes_.push_back(
          std::make_unique<Multiplexer>(Name(i), [this] { return Name(++names_); }));
    }
  }

  // Connects two processes for a new tree; each begins with Open.
  int Connect(int one, int other) {
    Pair pair;
    for (const int side : {0, 1}) {
      pair.connection[side] = static_cast<int>(ends_.size());
      End& end = ends_.emplace_back();
      end.process = side == 0 ? one : other;
      end.connection = ++connections_;
    }
    pairs_.push_back(pair);
    return static_cast<int>(pairs_.size()) - 1;
  }
  void Open(int pair, int side) {
    End& end = ends_[Index(pair, side)];
    end.open = true;
    pairs_[At(pair)].channel[side] = processes_[At(end.process)]->Open(end.connection);
    Pump();
  }
  int Both(int one, int other) {
    const int pair = Connect(one, other);
    Open(pair, 0);
    Open(pair, 1);
    return pair;
  }
  void Send(int pair, int side, const std::string& text) {
    Pair& state = pairs_[At(pair)];
    Of(pair, side).Send(*state.channel[side], FrameKind::kReport, text);
    state.sent[side].push_back(text);
    Pump();
  }
  void Close(int pair, int side) {
    Pair& state = pairs_[At(pair)];
    Of(pair, side).Close(*state.channel[side]);
    state.closed[side] = true;
    Pump();
  }
  void SetAway(int pair, int side, bool away) {
    Of(pair, side).SetAway(ends_[Index(pair, side)].connection, away);
  }
  // The network ends a connection, for both.
  void Cut(int end) {
    ends_[At(end)].incoming.emplace_back();
    ends_[At(end ^ 1)].incoming.emplace_back();
  }
  // Delivers what is next at one end. Returns false if there is nothing, or it does not read yet.
  bool Deliver(int index) {
    End& end = ends_[At(index)];
    if (!end.open || end.incoming.empty()) return false;
    const std::optional<Frame> frame = std::move(end.incoming.front());
    end.incoming.pop_front();
    if (end.closed) return true;
    Multiplexer& process = *processes_[At(end.process)];
    if (frame.has_value()) {
      EXPECT_TRUE(process.Receive(end.connection, *frame));
    } else {
      process.Lost(end.connection);
      CloseEnd(index);
    }
    Pump();
    return true;
  }
  // Delivers everything, in a random order of the connections; nothing at the `late` end.
  void DeliverAll(int late = -1) {
    std::vector<int> order(ends_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    for (bool any = true; any;) {
      any = false;
      std::shuffle(order.begin(), order.end(), random_);
      for (const int index : order) any = (index != late && Deliver(index)) || any;
    }
  }
  int OpenEnds() const {
    return static_cast<int>(
        std::count_if(ends_.begin(), ends_.end(), [](const End& end) { return !end.closed; }));
  }

  Pair& pair(int index) { return pairs_[At(index)]; }
  int ends() const { return static_cast<int>(ends_.size()); }
  int pairs() const { return static_cast<int>(pairs_.size()); }
  int Random(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }
  size_t Index(int pair, int side) const { return At(pairs_[At(pair)].connection[side]); }
  Multiplexer& Of(int pair, int side) { return *processes_[At(ends_[Index(pair, side)].process)]; }

  void CloseEnd(int index) {
    if (std::exchange(ends_[At(index)].closed, true)) return;
    ends_[At(index ^ 1)].incoming.emplace_back();
  }
  // Carries what the processes send, and gives what has come to the trees.
  void Pump() {
    for (size_t p = 0; p < processes_.size(); ++p) {
      for (Multiplexer::Outgoing& message : processes_[p]->TakeOutgoing()) {
        const int index = Find(static_cast<int>(p), message.to);
        if (!ends_[At(index)].closed) {
          ends_[At(index ^ 1)].incoming.push_back(Frame{message.kind, std::move(message.payload)});
        }
      }
      for (const int unused : processes_[p]->TakeUnused()) {
        CloseEnd(Find(static_cast<int>(p), unused));
      }
      const std::set<Multiplexer::Channel> stirred = processes_[p]->TakeStirred();
      for (int pair = 0; pair < pairs(); ++pair) {
        for (const int side : {0, 1}) {
          Pair& state = pairs_[At(pair)];
          if (!state.channel[side].has_value() || state.closed[side] ||
              &Of(pair, side) != processes_[p].get() || !stirred.contains(*state.channel[side])) {
            continue;
          }
          for (Frame& frame : Of(pair, side).Take(*state.channel[side])) {
            EXPECT_EQ(frame.kind, FrameKind::kReport);
            EXPECT_FALSE(state.ended[side]);
            state.received[side].push_back(std::move(frame.payload));
          }
          state.ended[side] = Of(pair, side).Ended(*state.channel[side]);
        }
      }
    }
  }
  int Find(int process, int connection) const {
    for (int i = 0; i < ends(); ++i) {
      if (ends_[At(i)].process == process && ends_[At(i)].connection == connection) return i;
    }
    ADD_FAILURE() << "process " << process << " has no connection " << connection;
    return 0;
  }

  std::vector<std::unique_ptr<Multiplexer>> processes_;
  std::vector<End> ends_;  // two of a wire after each other
  std::vector<Pair> pairs_;
  int connections_ = 0;
  int names_ = 1000;
  std::mt19937 random_;
};

// The end of a pair, in which order ever it was opened.
void ExpectAllArrived(const Pair& pair) {
  for (const int side : {0, 1}) EXPECT_EQ(pair.received[side], pair.sent[1 - side]);
}

TEST(MultiplexerTest, TreesOfTheSameProcessesShareTheOldestConnection) {
  Machines machines(2);
  for (int i = 0; i < 5; ++i) {
    // Either may be the upper one.
    const int pair = i % 2 == 0 ? machines.Both(0, 1) : machines.Both(1, 0);
    machines.Send(pair, 0, "before");
    machines.DeliverAll();
    EXPECT_EQ(machines.OpenEnds(), 2) << i;
    machines.Send(pair, 1, "after");
    machines.DeliverAll();
    ExpectAllArrived(machines.pair(pair));
  }
}

// While one of the processes knows that it carries nothing; it does when it is back.
TEST(MultiplexerTest, NoTreeMovesToAConnectionThatIsAway) {
  for (const int process : {0, 1}) {
    Machines machines(2);
    const int first = machines.Both(0, 1);
    machines.DeliverAll();
    machines.SetAway(first, process, true);
    const int second = machines.Both(0, 1);
    machines.DeliverAll();
    EXPECT_EQ(machines.OpenEnds(), 4);
    machines.Send(second, 0, "a");
    machines.Send(second, 1, "b");
    machines.DeliverAll();
    ExpectAllArrived(machines.pair(second));
    machines.Close(second, 0);
    machines.Close(second, 1);
    machines.SetAway(first, process, false);
    machines.Both(0, 1);
    machines.DeliverAll();
    EXPECT_EQ(machines.OpenEnds(), 2);
  }
}

TEST(MultiplexerTest, RanksOfOneProcessKeepTheirConnections) {
  Machines machines(1);
  for (int i = 0; i < 3; ++i) machines.Both(0, 0);
  machines.DeliverAll();
  EXPECT_EQ(machines.OpenEnds(), 6);
}

TEST(MultiplexerTest, EachPairOfProcessesHasItsOwn) {
  Machines machines(3);
  for (int i = 0; i < 4; ++i) {
    for (const auto& [one, other] : {std::pair(0, 1), std::pair(2, 1), std::pair(0, 2)}) {
      machines.Both(one, other);
      machines.DeliverAll();
    }
  }
  EXPECT_EQ(machines.OpenEnds(), 6);
}

TEST(MultiplexerTest, WhoClosesEndsItsOwnChannelAlone) {
  Machines machines(2);
  const int first = machines.Both(0, 1);
  machines.DeliverAll();
  const int second = machines.Both(0, 1);
  const int third = machines.Both(0, 1);
  machines.DeliverAll();
  // Also that of the connection itself.
  machines.Send(first, 0, "last");
  machines.Close(first, 0);
  machines.Close(third, 1);
  machines.DeliverAll();
  EXPECT_TRUE(machines.pair(first).ended[1]);
  EXPECT_THAT(machines.pair(first).received[1], ElementsAre("last"));
  EXPECT_TRUE(machines.pair(third).ended[0]);
  EXPECT_FALSE(machines.pair(second).ended[0] || machines.pair(second).ended[1]);
  machines.Send(second, 1, "still here");
  machines.DeliverAll();
  ExpectAllArrived(machines.pair(second));
  machines.Close(second, 0);
  machines.DeliverAll();
  EXPECT_TRUE(machines.pair(second).ended[1]);
  EXPECT_EQ(machines.OpenEnds(), 0);
}

TEST(MultiplexerTest, AConnectionThatEndsEndsAllThatShareIt) {
  Machines machines(2);
  std::vector<int> pairs;
  for (int i = 0; i < 3; ++i) {
    pairs.push_back(machines.Both(0, 1));
    machines.DeliverAll();
  }
  machines.Cut(machines.pair(pairs.front()).connection[0]);
  machines.DeliverAll();
  for (const int pair : pairs) {
    EXPECT_TRUE(machines.pair(pair).ended[0] && machines.pair(pair).ended[1]) << pair;
  }
}

// A packet of the new connection is lost, while the tree's frames already come over the old one:
// any number of them.
TEST(MultiplexerTest, AChannelThatMovesMayCarryAnyNumberOfFrames) {
  for (const int count : {1, 4'097, 100'000}) {
    for (const int late_side : {0, 1}) {
      for (int before = 0; before < 4; ++before) {
        if (count > 10'000 && (before == 0 || before == 3)) continue;
        SCOPED_TRACE(absl::StrCat(count, " frames, side ", late_side, ", after ", before));
        Machines machines(2);
        const int older = machines.Both(0, 1);
        machines.DeliverAll();
        const int pair = machines.Both(0, 1);
        const int late = machines.pair(pair).connection[late_side];
        for (int i = 0; i < before; ++i) {
          machines.Deliver(late);
          machines.DeliverAll(late);
        }
        machines.DeliverAll(late);
        for (int i = 0; i < count; ++i) {
          machines.Send(pair, 1 - late_side, absl::StrCat(i));
          if (i % 1000 == 0) machines.DeliverAll(late);
        }
        machines.DeliverAll(late);
        // The older tree goes on meanwhile.
        machines.Send(older, 1 - late_side, "beside");
        machines.DeliverAll(late);
        EXPECT_THAT(machines.pair(older).received[late_side], ElementsAre("beside"));
        // What was said before the end arrives.
        machines.Close(pair, 1 - late_side);
        machines.DeliverAll();
        ExpectAllArrived(machines.pair(pair));
        EXPECT_TRUE(machines.pair(pair).ended[late_side]);
        machines.Close(pair, late_side);
        machines.DeliverAll();
        EXPECT_FALSE(machines.pair(older).ended[0] || machines.pair(older).ended[1]);
        EXPECT_EQ(machines.OpenEnds(), 2);
      }
    }
  }
}

// Random histories: nothing is lost, doubled or out of order, whenever trees begin and end, and
// most trees share a connection.
TEST(MultiplexerTest, RandomHistories) {
  int trees = 0;
  int connections = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const int processes = 2 + static_cast<int>(seed % 2);
    const bool cuts = seed % 4 == 3;
    Machines machines(processes, seed);
    std::set<int> opened;  // 2 * pair + side
    const int steps = 150 + machines.Random(150);
    for (int step = 0; step < steps; ++step) {
      const int what = machines.Random(100);
      if (what < 6) {
        const int one = machines.Random(processes);
        machines.Connect(one, (one + 1 + machines.Random(processes - 1)) % processes);
      } else if (what < 18 && machines.pairs() > 0) {
        const int pair = machines.Random(machines.pairs());
        const int side = machines.Random(2);
        if (opened.insert(2 * pair + side).second) machines.Open(pair, side);
      } else if (what < 45 && machines.pairs() > 0) {
        const int pair = machines.Random(machines.pairs());
        const int side = machines.Random(2);
        const Pair& state = machines.pair(pair);
        if (state.channel[side].has_value() && !state.closed[side] && !state.ended[side]) {
          const int count = seed % 8 == 0 && what < 20 ? machines.Random(2'500) : 1;
          for (int i = 0; i < count; ++i) machines.Send(pair, side, absl::StrCat(step, ".", i));
        }
      } else if (what < 50 && machines.pairs() > 0) {
        const int pair = machines.Random(machines.pairs());
        const int side = machines.Random(2);
        const Pair& state = machines.pair(pair);
        if (state.channel[side].has_value() && !state.closed[side]) machines.Close(pair, side);
      } else if (what < 51 && cuts && machines.ends() > 0) {
        machines.Cut(machines.Random(machines.ends()));
      } else if (machines.ends() > 0) {
        machines.Deliver(machines.Random(machines.ends()));
      }
    }
    for (int end = 0; end < 2 * machines.pairs(); ++end) {
      if (opened.insert(end).second) machines.Open(end / 2, end % 2);
    }
    machines.DeliverAll();
    for (int i = 0; i < machines.pairs(); ++i) {
      const Pair& pair = machines.pair(i);
      for (const int side : {0, 1}) {
        const std::vector<std::string>& sent = pair.sent[1 - side];
        const std::vector<std::string>& received = pair.received[side];
        // What arrived is what was sent first.
        ASSERT_LE(received.size(), sent.size()) << i;
        ASSERT_TRUE(std::equal(received.begin(), received.end(), sent.begin())) << i;
        if (pair.closed[side]) continue;
        if (!cuts) {
          EXPECT_EQ(received, sent) << i << ", side " << side;
          EXPECT_EQ(pair.ended[side], pair.closed[1 - side]) << i << ", side " << side;
        }
        if (pair.closed[1 - side]) {
          EXPECT_TRUE(pair.ended[side]) << i << ", side " << side;
        }
      }
    }
    if (cuts) continue;
    for (int i = 0; i < machines.pairs(); ++i) {
      trees += machines.pair(i).closed[0] || machines.pair(i).closed[1] ? 0 : 1;
    }
    connections += machines.OpenEnds() / 2;
    for (int i = 0; i < machines.pairs(); ++i) {
      for (const int side : {0, 1}) {
        if (!machines.pair(i).closed[side]) machines.Close(i, side);
      }
    }
    machines.DeliverAll();
    ASSERT_EQ(machines.OpenEnds(), 0);
  }
  EXPECT_LT(2 * connections, trees);
}

// ---- Neighbours who lie ----

class LiarTest : public ::testing::Test {
 protected:
  LiarTest() : process_(Name(2), [this] { return Name(++names_); }) {
    first_ = process_.Open(1);
    second_ = process_.Open(2);
    process_.TakeOutgoing();
  }
  bool Meets(int connection, const std::string& process, const std::string& name) {
    return process_.Receive(connection, {FrameKind::kMeet, process + name});
  }
  std::vector<FrameKind> Said() {
    std::vector<FrameKind> kinds;
    for (const Multiplexer::Outgoing& message : process_.TakeOutgoing()) {
      kinds.push_back(message.kind);
    }
    return kinds;
  }
  static std::string Move(const std::string& name, char number) {
    return name + std::string({number, 0, 0, 0});
  }

  int names_ = 0;
  Multiplexer process_;
  Multiplexer::Channel first_ = 0;
  Multiplexer::Channel second_ = 0;
};

TEST_F(LiarTest, OnlyTheProcessOfTheOlderConnectionTakesAChannelThere) {
  EXPECT_TRUE(Meets(1, Name(1), Name(10)));
  EXPECT_TRUE(Meets(2, Name(1), Name(20)));
  EXPECT_THAT(Said(), ElementsAre(FrameKind::kMove));
  // A stranger knows the name of the process, but not that of its connection.
  EXPECT_FALSE(process_.Receive(2, {FrameKind::kMoved, Name(20)}));
  EXPECT_TRUE(process_.Ended(second_));
  EXPECT_FALSE(process_.Ended(first_));
}

TEST_F(LiarTest, AChannelMovesToAConnectionOfTheSameProcessOnly) {
  EXPECT_TRUE(Meets(1, Name(7), Name(10)));
  EXPECT_TRUE(Meets(2, Name(8), Name(20)));
  EXPECT_TRUE(process_.Receive(2, {FrameKind::kMove, Move(Name(10), 1)}));
  EXPECT_THAT(Said(), ElementsAre(FrameKind::kStay));
  EXPECT_FALSE(process_.Ended(first_) || process_.Ended(second_));
}

TEST_F(LiarTest, NonsenseEndsItsConnectionAlone) {
  const std::vector<std::pair<FrameKind, std::string>> nonsense = {
      {FrameKind::kMeet, "short"},
      {FrameKind::kMoved, ""},
      {FrameKind::kStay, ""},
      {FrameKind::kMove, "short"},
      {FrameKind::kMove, Move(Name(9), 1)},  // before they have met
      {FrameKind::kChannel, "x"},
      {FrameKind::kChannel, std::string("\0\0\0\0\x0b\0\0\0", 8)},  // its own, by its number
      {FrameKind::kChannel, std::string("\1\0\0\0\x01\0\0\0", 8)},  // no frame of a tree
      {FrameKind::kEnd, "x"},
      {FrameKind::kSettled, "x"},
      {FrameKind::kSettled, std::string(4, '\0')},  // it has not moved
  };
  for (const auto& [kind, payload] : nonsense) {
    const Multiplexer::Channel liar = process_.Open(3);
    EXPECT_FALSE(process_.Receive(3, {kind, payload})) << static_cast<int>(kind);
    EXPECT_TRUE(process_.Ended(liar));
    process_.Close(liar);
    EXPECT_THAT(process_.TakeUnused(), ElementsAre(3));
    EXPECT_FALSE(process_.Ended(first_) || process_.Ended(second_));
  }
}

TEST_F(LiarTest, WhoExceedsItsCreditEndsItsConnection) {
  EXPECT_TRUE(Meets(1, Name(7), Name(10)));
  EXPECT_TRUE(Meets(2, Name(7), Name(20)));
  EXPECT_TRUE(process_.Receive(2, {FrameKind::kMove, Move(Name(10), 1)}));
  EXPECT_THAT(Said(), ElementsAre(FrameKind::kMoved));
  const Frame frame = {FrameKind::kChannel, std::string("\1\0\0\0\x0b\0\0\0", 8)};
  for (size_t i = 0; i < Multiplexer::kCredit; ++i) ASSERT_TRUE(process_.Receive(1, frame));
  EXPECT_FALSE(process_.Receive(1, frame));
  EXPECT_TRUE(process_.Ended(first_));
}

TEST_F(LiarTest, FramesForChannelsThatDoNotExistAreIgnored) {
  EXPECT_TRUE(Meets(1, Name(7), Name(10)));
  EXPECT_TRUE(process_.Receive(1, {FrameKind::kChannel, std::string("\5\0\0\0\x0b\0\0\0", 8)}));
  EXPECT_TRUE(process_.Receive(1, {FrameKind::kEnd, std::string("\5\0\0\0", 4)}));
  EXPECT_THAT(process_.TakeStirred(), IsEmpty());
  EXPECT_FALSE(process_.Ended(first_));
}

}  // namespace
}  // namespace railhead::bootstrap
