// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::transfers {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A property of pairs of ranks.
using Pairs = std::function<bool(int one, int other)>;

bool HaveSameParity(int one, int other) { return (one + other) % 2 == 0; }

constexpr std::array<uint32_t, 3> kKeys = {11, 12, 13};

// A transfer's own memory, which starts before its bytes.
class TestMemory final : public collectives::RegisteredMemory {
 public:
  static constexpr size_t kBefore = 100;

  TestMemory(const std::byte* data, bool on_device) : number_(++last_), on_device_(on_device) {
    remote_.address = reinterpret_cast<uintptr_t>(data) - kBefore;
    remote_.keys.assign(kKeys.begin(), kKeys.end());
  }
  uint64_t number() const override { return number_; }
  const collectives::RemoteMemory& remote() const override { return remote_; }
  bool on_device() const override { return on_device_; }
  absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const override {
    std::copy(from.begin(), from.end(), to);
    return absl::OkStatus();
  }

 private:
  static inline uint64_t last_ = 0;
  const uint64_t number_;
  const bool on_device_;
  collectives::RemoteMemory remote_;
};

// Messages between engines of one thread, which move when chance says so.
class Wires {
 public:
  // `joins`: the pairs that join notes and bytes.
  explicit Wires(Pairs joins) : joins_(std::move(joins)) {}

  class End final : public collectives::Messenger {
   public:
    End(Wires& wires, int rank) : wires_(wires), rank_(rank) {}
    void Expect(collectives::Call /*call*/) override {}
    Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
      EXPECT_FALSE(data.empty());
      Row& row = wires_.rows_[{rank_, peer}];
      row.sends.push_back({data, 0});
      return row.sent++;
    }
    Ticket PostDirect(int peer, absl::Span<const std::byte> data,
                      const collectives::RemoteMemory& to) override {
      EXPECT_FALSE(data.empty());
      EXPECT_THAT(to.keys, AnyOf(::testing::IsEmpty(), ::testing::ElementsAreArray(kKeys)));
      Row& row = wires_.rows_[{rank_, peer}];
      row.sends.push_back({data, to.keys.empty() ? 0 : to.address});
      ++wires_.directs_;
      return row.sent++;
    }
    bool Joins(int peer) const override { return wires_.joins_(rank_, peer); }
    bool SendJoined(int peer, absl::Span<const std::byte> head,
                    absl::Span<const std::byte> rest) override {
      EXPECT_TRUE(Joins(peer));
      Row& row = wires_.rows_[{rank_, peer}];
      if (!row.sends.empty() || row.under_way.size() >= kMostUnderWay) return false;
      std::vector<std::byte>& message = row.under_way.emplace_back(head.begin(), head.end());
      row.places.push_back(0);
      message.insert(message.end(), rest.begin(), rest.end());
      return true;
    }
    absl::StatusOr<absl::Span<const std::byte>> Arrived(int peer) override {
      EXPECT_TRUE(Joins(peer));
      const Row& row = wires_.rows_[{peer, rank_}];
      if (!row.shown || !row.receives.empty()) return absl::Span<const std::byte>();
      return absl::MakeConstSpan(row.under_way.front());
    }
    void Take(int peer) override {
      Row& row = wires_.rows_[{peer, rank_}];
      row.under_way.pop_front();
      row.places.pop_front();
      row.shown = false;
    }
    Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override {
      Row& row = wires_.rows_[{peer, rank_}];
      row.receives.push_back(buffer);
      return row.asked++;
    }
    bool SendDone(int peer, Ticket ticket) const override {
      return ticket < wires_.rows_[{rank_, peer}].left;
    }
    bool ReceiveDone(int peer, Ticket ticket) const override {
      return ticket < wires_.rows_[{peer, rank_}].received;
    }
    absl::Status Progress() override { return absl::UnimplementedError("of one thread"); }

   private:
    Wires& wires_;
    const int rank_;
  };

  // Messages that NICs read, and may write.
  size_t directs() const { return directs_; }

  // Moves some of what can be moved. Returns whether anything could.
  bool Move(std::mt19937& random) {
    bool could = false;
    for (auto& [ends, row] : rows_) {
      while (!row.sends.empty() && row.under_way.size() < kMostUnderWay) {
        could = true;
        if (random() % 3 == 0) break;
        const Outgoing next = row.sends.front();
        row.sends.pop_front();
        row.under_way.emplace_back(next.data.begin(), next.data.end());
        row.places.push_back(next.address);
        ++row.left;
      }
      while (!row.under_way.empty() && !row.receives.empty()) {
        could = true;
        if (random() % 3 == 0) break;
        const std::vector<std::byte>& bytes = row.under_way.front();
        const collectives::ReceiveBuffer& buffer = row.receives.front();
        EXPECT_EQ(bytes.size(), buffer.size) << ends.first << " to " << ends.second;
        std::memcpy(buffer.data, bytes.data(), std::min(bytes.size(), buffer.size));
        if (row.places.front() != 0) {
          EXPECT_EQ(row.places.front(), reinterpret_cast<uintptr_t>(buffer.data));
          EXPECT_NE(buffer.registered, nullptr);
        }
        row.places.pop_front();
        row.under_way.pop_front();
        row.receives.pop_front();
        ++row.received;
      }
      if (joins_(ends.first, ends.second) && !row.under_way.empty() && row.receives.empty() &&
          !row.shown) {
        could = true;
        row.shown = random() % 3 != 0;
      }
    }
    return could;
  }

 private:
  static constexpr size_t kMostUnderWay = 3;
  const Pairs joins_;
  struct Outgoing {
    absl::Span<const std::byte> data;
    uint64_t address = 0;  // where NICs would write it; 0: nowhere
  };
  struct Row {
    std::deque<Outgoing> sends;
    std::deque<std::vector<std::byte>> under_way;
    std::deque<uint64_t> places;  // addresses of these
    bool shown = false;           // the first of them may be taken where it lies
    std::deque<collectives::ReceiveBuffer> receives;
    uint64_t sent = 0;
    uint64_t left = 0;
    uint64_t asked = 0;
    uint64_t received = 0;
  };
  std::map<std::pair<int, int>, Row> rows_;
  size_t directs_ = 0;
};

struct TestTransfer : Transfer {
  std::vector<std::byte> bytes;
  std::unique_ptr<TestMemory> memory;
  bool done = false;
  size_t message = 0;  // of a send: which one it is
};
using TestTransferPtr = std::shared_ptr<TestTransfer>;

std::byte ByteOf(size_t message, size_t i) {
  return static_cast<std::byte>(message * 37 + i * 11 + (i >> 9U));
}

std::vector<std::byte> BytesOf(size_t message, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = ByteOf(message, i);
  return bytes;
}

TestTransferPtr MakeSend(int to, int tag, size_t size, size_t message) {
  auto send = std::make_shared<TestTransfer>();
  send->direction = Direction::kSend;
  send->peer = to;
  send->tag = tag;
  send->message = message;
  send->bytes = BytesOf(message, size);
  send->data = send->bytes.data();
  send->size = size;
  return send;
}

TestTransferPtr MakeReceive(int from, int tag, size_t size) {
  auto receive = std::make_shared<TestTransfer>();
  receive->direction = Direction::kReceive;
  receive->peer = from;
  receive->tag = tag;
  receive->bytes.resize(size);
  receive->data = receive->bytes.data();
  receive->size = size;
  return receive;
}

constexpr size_t kPiece = 20000;

class World {
 public:
  explicit World(int ranks, unsigned seed = 0, Pairs joins = HaveSameParity,
                 const Pairs& greets = HaveSameParity)
      : random_(seed), wires_(std::move(joins)) {
    for (int rank = 0; rank < ranks; ++rank) {
      ends_.push_back(std::make_unique<Wires::End>(wires_, rank));
      Engine::Options options;
      options.rank = rank;
      options.name = [](int of) { return absl::StrCat("rank ", of); };
      options.done = [](Transfer& transfer) {
        auto& ended = static_cast<TestTransfer&>(transfer);
        EXPECT_FALSE(ended.done);
        ended.done = true;
        // The memory is the user's again.
        if (ended.direction == Direction::kSend) {
          std::fill(ended.bytes.begin(), ended.bytes.end(), std::byte{0xee});
        }
      };
      options.greets = [rank, greets](int peer) { return greets(rank, peer); };
      options.piece = kPiece;
      engines_.push_back(std::make_unique<Engine>(*ends_.back(), std::move(options)));
      for (int peer = 0; peer < ranks; ++peer) engines_.back()->Listen(peer);
    }
  }

  Engine& at(int rank) { return *engines_[static_cast<size_t>(rank)]; }
  void Post(int rank, TestTransferPtr transfer) {
    posted_.push_back(std::move(transfer));
    at(rank).Post(*posted_.back());
  }
  Wires::End& end(int rank) { return *ends_[static_cast<size_t>(rank)]; }
  std::mt19937& random() { return random_; }
  size_t directs() const { return wires_.directs(); }

  // One step of everything; whether anything was left to do. The first error is the world's.
  bool Step() {
    for (auto& engine : engines_) status_.Update(engine->Advance());
    return wires_.Move(random_) && status_.ok();
  }
  absl::Status Run() {
    while (Step()) {
    }
    return status_;
  }

 private:
  std::mt19937 random_;
  std::vector<TestTransferPtr> posted_;
  absl::Status status_;
  Wires wires_;
  std::vector<std::unique_ptr<Wires::End>> ends_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

size_t RandomSize(std::mt19937& random) {
  switch (random() % 6) {
    case 0:
      return 0;
    case 1:
    case 2:
      return random() % 100;
    case 3: {
      constexpr std::array<size_t, 3> kLimits = {2048, kMostEagerInMemory, kMostEager};
      return kLimits[random() % kLimits.size()] - 2 + random() % 4;
    }
    case 4:
      return random() % (3 * kPiece);
    default:
      return kPiece + random() % 3;
  }
}

// What every rank posts, in its order, so that all of it ends: the receives of a rank name what
// they take, or none of them names the source, or none the tag, or neither.
struct Program {
  std::vector<std::vector<TestTransferPtr>> ranks;
};

Program RandomProgram(std::mt19937& random, int ranks) {
  Program program;
  program.ranks.resize(static_cast<size_t>(ranks));
  const auto some = [&random](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  std::vector<unsigned> kinds;
  for (int rank = 0; rank < ranks; ++rank) kinds.push_back(random() % 4);
  const size_t count = 1 + random() % 60;
  for (size_t message = 0; message < count; ++message) {
    const int from = some(ranks);
    const int to = some(ranks);
    const int tag = some(3);
    const size_t size = RandomSize(random);
    const unsigned kind = kinds[static_cast<size_t>(to)];
    // One that may get another message has place for any.
    const size_t place = std::max(3 * kPiece, kMostEager + 2) + (random() % 2);
    const TestTransferPtr send = MakeSend(to, tag, size, message);
    const TestTransferPtr receive =
        MakeReceive((kind & 1U) != 0 ? kAny : from, (kind & 2U) != 0 ? kAny : tag, place);
    for (const TestTransferPtr& one : {send, receive}) {
      if (random() % 3 != 0) continue;
      // A rank's messages to itself are copied by the CPU.
      const bool on_device = from != to && one->peer != kAny && random() % 2 == 0;
      one->memory = std::make_unique<TestMemory>(one->data, on_device);
      one->registered = one->memory.get();
    }
    program.ranks[static_cast<size_t>(from)].push_back(send);
    program.ranks[static_cast<size_t>(to)].push_back(receive);
  }
  for (auto& rank : program.ranks) std::shuffle(rank.begin(), rank.end(), random);
  return program;
}

// Every message has come once, whole, and in the order in which those of its kind were sent.
void ExpectRight(const Program& program, const std::string& where) {
  using Kind = std::tuple<int, int, int>;                      // from, to, tag
  std::map<Kind, std::deque<std::pair<size_t, size_t>>> sent;  // message and size
  for (size_t from = 0; from < program.ranks.size(); ++from) {
    for (const TestTransferPtr& one : program.ranks[from]) {
      ASSERT_TRUE(one->done) << where;
      if (one->direction != Direction::kSend) continue;
      sent[{static_cast<int>(from), one->peer, one->tag}].emplace_back(one->message, one->size);
    }
  }
  for (size_t to = 0; to < program.ranks.size(); ++to) {
    for (const TestTransferPtr& one : program.ranks[to]) {
      if (one->direction == Direction::kSend) continue;
      const Transfer::Outcome& outcome = one->outcome;
      EXPECT_TRUE(one->peer == kAny || one->peer == outcome.peer) << where;
      EXPECT_TRUE(one->tag == kAny || one->tag == outcome.tag) << where;
      auto& row = sent[{outcome.peer, static_cast<int>(to), outcome.tag}];
      ASSERT_FALSE(row.empty()) << where << ": one that nobody has sent";
      const auto [message, size] = row.front();
      row.pop_front();
      ASSERT_EQ(outcome.bytes, size) << where;
      // What is behind it was not touched.
      std::vector<std::byte> expected = BytesOf(message, size);
      expected.resize(one->bytes.size());
      ASSERT_TRUE(one->bytes == expected) << where << ": wrong bytes of message " << message;
    }
  }
}

constexpr int kMostRanks = 5;

// About half of the ordered pairs; sometimes all or none.
Pairs SomePairs(std::mt19937& random) {
  const unsigned kind = random() % 8;
  std::array<bool, size_t{kMostRanks} * kMostRanks> chosen{};
  for (bool& pair : chosen) pair = kind == 0 || (kind > 1 && random() % 2 == 0);
  return [chosen](int one, int other) {
    return chosen.at(static_cast<size_t>(one * kMostRanks + other));
  };
}

TEST(EngineTest, RandomProgramsEndWithTheRightBytesInTheRightPlaces) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  const unsigned seeds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 150;
  size_t directs = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % kMostRanks);
    const Program program = RandomProgram(random, ranks);
    const Pairs joins = [some = SomePairs(random)](int one, int other) {
      return some(std::min(one, other), std::max(one, other));  // both ends do, or neither
    };
    World world(ranks, seed, joins, SomePairs(random));
    // Ranks post at a pace of their own.
    std::vector<size_t> at(program.ranks.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t rank = 0; rank < at.size(); ++rank) {
        if (at[rank] == program.ranks[rank].size()) continue;
        more = true;
        if (random() % 3 == 0) {
          world.Post(static_cast<int>(rank), program.ranks[rank][at[rank]++]);
        }
      }
      if (random() % 2 == 0) world.Step();
    }
    const std::string where = absl::StrCat("seed ", seed, ", ", ranks, " ranks");
    ASSERT_EQ(world.Run(), absl::OkStatus()) << where;
    ExpectRight(program, where);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(world.at(rank).oldest(), nullptr) << where;
      EXPECT_TRUE(world.at(rank).Flushed([](int) { return false; })) << where;
      EXPECT_TRUE(world.at(rank).UnderWay().empty()) << where;
    }
    directs += world.directs();
  }
  EXPECT_GT(directs, seeds) << "messages between registered memory";
}

size_t Unfinished(const Engine& engine) {
  size_t count = 0;
  for (const Transfer* each = engine.oldest(); each != nullptr; each = each->going.next) ++count;
  return count;
}

// Messages of rank 0 without a receive: the receiver keeps some, and the sender the others.
void ExpectRoomAt(int receiver) {
  World world(2);
  const size_t size = receiver == 0 ? kMostEagerInMemory : kMostEager;
  const size_t count = 3 * kEagerRoom / size;
  std::vector<TestTransferPtr> sends;
  for (size_t i = 0; i < count; ++i) {
    sends.push_back(MakeSend(receiver, 0, size, i));
    world.Post(0, sends.back());
  }
  ASSERT_EQ(world.Run(), absl::OkStatus());
  const auto done = static_cast<size_t>(
      std::count_if(sends.begin(), sends.end(), [](const auto& send) { return send->done; }));
  EXPECT_EQ(done, kEagerRoom / EagerCost(size));
  EXPECT_EQ(Unfinished(world.at(0)), count - done);

  // With the receives all of them come, and then there is room again.
  for (int round = 0; round < 3; ++round) {
    std::vector<TestTransferPtr> receives;
    for (size_t i = 0; i < count; ++i) {
      receives.push_back(MakeReceive(0, 0, size));
      world.Post(receiver, receives.back());
    }
    ASSERT_EQ(world.Run(), absl::OkStatus());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(receives[i]->done) << i;
      ASSERT_EQ(receives[i]->bytes[1], ByteOf(i, 1)) << i;
      ASSERT_TRUE(sends[i]->done) << i;
    }
    sends.clear();
    for (size_t i = 0; round < 2 && i < count; ++i) {
      sends.push_back(MakeSend(receiver, 0, size, i));
      world.Post(0, sends.back());
    }
  }
}

TEST(EngineTest, ARankKeepsNoMoreOfAnotherThanItsRoom) { ExpectRoomAt(1); }
TEST(EngineTest, ARankKeepsNoMoreOfItselfThanItsRoom) { ExpectRoomAt(0); }

// A sender may leave before its messages are received: nobody takes the notes that give it room.
TEST(EngineTest, NothingIsOwedToARankThatHasLeft) {
  World world(3);
  std::vector<TestTransferPtr> receives;
  for (size_t i = 0; i < kEagerRoom / EagerCost(kMostEager); ++i) {
    world.Post(0, MakeSend(1, 0, kMostEager, i));
  }
  ASSERT_EQ(world.Run(), absl::OkStatus());
  for (size_t i = 0; i < kEagerRoom / EagerCost(kMostEager); ++i) {
    receives.push_back(MakeReceive(0, 0, kMostEager));
    world.Post(1, receives.back());
  }
  ASSERT_EQ(world.at(1).Advance(), absl::OkStatus());  // and no more: rank 0 takes nothing
  EXPECT_TRUE(receives.back()->done);
  EXPECT_FALSE(world.at(1).Flushed([](int) { return false; }));
  EXPECT_FALSE(world.at(1).Flushed([](int peer) { return peer == 2; }));
  EXPECT_TRUE(world.at(1).Flushed([](int peer) { return peer == 0; }));
}

TEST(EngineTest, ALargeOneDoesNotHoldUpASmallOne) {
  World world(2);
  const TestTransferPtr large = MakeReceive(0, 1, 100 * kPiece);
  const TestTransferPtr small = MakeReceive(0, 2, 8);
  world.Post(1, large);
  world.Post(1, small);
  world.Post(0, MakeSend(1, 1, 100 * kPiece, 1));
  while (large->bytes[0] != ByteOf(1, 0)) ASSERT_TRUE(world.Step());
  ASSERT_FALSE(large->done);
  world.Post(0, MakeSend(1, 2, 8, 2));
  while (!small->done) ASSERT_TRUE(world.Step());
  EXPECT_FALSE(large->done);
  EXPECT_EQ(world.Run(), absl::OkStatus());
  EXPECT_TRUE(large->done);
}

TEST(EngineTest, AMessageThatIsTooLongIsAnErrorThatNamesBothSides) {
  for (const size_t size : {size_t{9}, kMostEager + 1}) {
    for (const int from : {0, 1}) {
      for (const bool first : {true, false}) {
        World world(2);
        const TestTransferPtr receive = MakeReceive(from, kAny, 8);
        if (first) world.Post(1, receive);
        world.Post(from, MakeSend(1, 5, size, 0));
        absl::Status ran = absl::OkStatus();
        if (!first) {
          ran = world.Run();
          EXPECT_EQ(ran, absl::OkStatus());
          world.Post(1, receive);
        }
        ran = world.Run();
        EXPECT_TRUE(absl::IsInternal(ran)) << ran;
        EXPECT_THAT(std::string(ran.message()),
                    AllOf(HasSubstr(absl::StrCat("rank ", from, " sends ", size,
                                                 " bytes with tag 5 to rank 1")),
                          HasSubstr("room for only 8")));
        EXPECT_FALSE(receive->done);
        EXPECT_EQ(receive->bytes, std::vector<std::byte>(8));
      }
    }
  }
}

// Whatever a peer says that no rank says is an error, which names it.
TEST(EngineTest, NonsenseOfAPeerIsAnError) {
  const auto note = [](Note::Kind kind, int tag, uint64_t size, uint64_t id, uint64_t offset) {
    Note made;
    made.kind = kind;
    made.tag = tag;
    made.size = size;
    made.id = id;
    made.offset = offset;
    return made;
  };
  const std::vector<Note> nonsense = {
      note(static_cast<Note::Kind>(0), 0, 0, 0, 0),
      note(static_cast<Note::Kind>(7), 0, 0, 0, 0),
      note(Note::Kind::kEager, -1, 1, 0, 0),
      note(Note::Kind::kEager, 0, kMostEager + 1, 0, 0),
      note(Note::Kind::kAnnounce, 0, std::numeric_limits<uint64_t>::max(), 0, 0),
      note(Note::Kind::kPull, 0, 0, 3, 0),
      note(Note::Kind::kData, 0, 10, 3, 0),
      note(Note::Kind::kData, 0, 0, 3, 0),
      note(Note::Kind::kTaken, 0, 1, 0, 0),
  };
  for (const Note& said : nonsense) {
    World world(2);
    const NoteBytes bytes = Encode(said);
    world.end(0).PostSend(1, bytes);
    const absl::Status ran = world.Run();
    EXPECT_TRUE(absl::IsInternal(ran)) << static_cast<int>(said.kind) << ": " << ran;
    EXPECT_THAT(std::string(ran.message()), HasSubstr("rank 0"));
  }
  // What was asked for, but not this part of it.
  for (const Note& said :
       {note(Note::Kind::kData, 0, 10, 0, 1), note(Note::Kind::kData, 0, kMostEager + 2, 0, 0)}) {
    World world(2);
    world.Post(1, MakeReceive(0, 0, kMostEager + 1));
    const NoteBytes announced = Encode(note(Note::Kind::kAnnounce, 0, kMostEager + 1, 0, 0));
    const NoteBytes bytes = Encode(said);
    world.end(0).PostSend(1, announced);
    world.end(0).PostSend(1, bytes);
    EXPECT_THAT(std::string(world.Run().message()),
                AnyOf(HasSubstr("out of order"), HasSubstr("does not send")));
  }
}

TEST(EngineTest, BytesJoinedToANoteAreThoseThatItSays) {
  Note eager;
  eager.kind = Note::Kind::kEager;
  eager.size = 100;
  Note hello;
  const std::vector<std::byte> bytes(200);
  const auto all = absl::MakeConstSpan(bytes);
  for (const auto& [note, joined] :
       {std::pair{eager, size_t{99}}, std::pair{eager, size_t{101}}, std::pair{hello, size_t{1}}}) {
    World world(3);
    const NoteBytes head = Encode(note);
    ASSERT_TRUE(world.end(0).SendJoined(2, head, all.first(joined)));
    const absl::Status ran = world.Run();
    EXPECT_TRUE(absl::IsInternal(ran)) << joined << ": " << ran;
    EXPECT_THAT(std::string(ran.message()), HasSubstr("rank 0"));
  }
  // Shorter than a note.
  World world(3);
  world.end(0).PostSend(2, all.first(3));
  EXPECT_THAT(std::string(world.Run().message()), HasSubstr("malformed"));
}

TEST(NoteTest, ComesBackAsItWas) {
  Note note;
  note.kind = Note::Kind::kData;
  note.size = 0x123456789abc;
  note.id = 77;
  note.offset = 0x0fedcba987;
  const NoteBytes bytes = Encode(note);
  const absl::StatusOr<Note> parsed = ParseNote(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, note);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseNote(absl::MakeConstSpan(bytes).first(size)).ok()) << size;
  }
}

TEST(NoteTest, TheSmallestTransfersAreWithinIt) {
  for (size_t size = 0; size <= Note::kMostInlined + 1; ++size) {
    Note note;
    note.kind = Note::Kind::kEager;
    note.tag = 5;
    note.size = size;
    const bool within = size <= Note::kMostInlined;
    EXPECT_EQ(note.IsFollowed(), !within);
    for (size_t i = 0; within && i < size; ++i) note.inlined.at(i) = ByteOf(size, i);
    NoteBytes bytes = Encode(note);
    const absl::StatusOr<Note> parsed = ParseNote(bytes);
    ASSERT_TRUE(parsed.ok()) << size << ": " << parsed.status();
    EXPECT_EQ(*parsed, note) << size;
    const std::optional<WholeTransfer> whole = ParseWhole(bytes);
    ASSERT_EQ(whole.has_value(), within) << size;
    if (within) {
      EXPECT_EQ(whole->tag, 5);
      EXPECT_EQ(whole->bytes, absl::MakeConstSpan(note.inlined).first(size));
    }
    // Nothing else is in a note.
    if (size == Note::kMostInlined) continue;
    bytes.back() = std::byte{1};
    EXPECT_FALSE(ParseNote(bytes).ok()) << size;
    EXPECT_FALSE(ParseWhole(bytes).has_value()) << size;
  }
}

}  // namespace
}  // namespace railhead::transfers
