// SPDX-License-Identifier: Apache-2.0
//
// A world of ranks in threads whose messages take their time: for many more schedules than a
// network would show.
#ifndef RAILHEAD_RUNTIME_TESTING_SIMULATED_MESSENGER_H_
#define RAILHEAD_RUNTIME_TESTING_SIMULATED_MESSENGER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::testing {

// All messages of a world in one place.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(int ranks)
      : ranks_(static_cast<size_t>(ranks)), changed_(ranks_), channels_(ranks_ * ranks_) {}

  int ranks() const { return static_cast<int>(ranks_); }
  // Whether everything that was sent was also received.
  bool Empty() const {
    for (const Channel& channel : channels_) {
      if (channel.begun != channel.received || !channel.posted.empty()) return false;
    }
    return true;
  }

 private:
  friend class SimulatedMessenger;

  // Messages from one rank to another, by their numbers.
  struct Channel {
    std::deque<absl::Span<const std::byte>> waiting;  // still in the sender's buffers
    std::deque<std::vector<std::byte>> under_way;
    std::deque<collectives::ReceiveBuffer> posted;
    uint64_t begun = 0;
    uint64_t left = 0;
    uint64_t asked = 0;
    uint64_t received = 0;
  };
  Channel& At(int from, int to) {
    return channels_[static_cast<size_t>(from) * ranks_ + static_cast<size_t>(to)];
  }
  // Of a rank, which waits for messages.
  std::condition_variable& Changed(int rank) { return changed_[static_cast<size_t>(rank)]; }

  size_t ranks_;
  std::mutex mutex_;
  std::vector<std::condition_variable> changed_;
  std::vector<Channel> channels_;
};

// Moves at every step some of the messages that could move; how many, chance decides, and so does
// the threads' scheduler. A buffer is read as late as its owner may still believe it to be read.
class SimulatedMessenger final : public collectives::Messenger {
 public:
  SimulatedMessenger(SimulatedWorld& world, int rank, unsigned seed)
      : world_(world), rank_(rank), random_(seed) {}

  void Expect(collectives::Call /*call*/) override {}

  Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
    EXPECT_FALSE(data.empty()) << "empty messages are a waste";
    const std::lock_guard<std::mutex> lock(world_.mutex_);
    SimulatedWorld::Channel& channel = world_.At(rank_, peer);
    channel.waiting.push_back(data);
    ++sent_;
    return channel.begun++;
  }

  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override {
    const std::lock_guard<std::mutex> lock(world_.mutex_);
    SimulatedWorld::Channel& channel = world_.At(peer, rank_);
    channel.posted.push_back(buffer);
    ++wanted_;
    return channel.asked++;
  }

  bool SendDone(int peer, Ticket ticket) const override {
    const std::lock_guard<std::mutex> lock(world_.mutex_);
    return ticket < world_.At(rank_, peer).left;
  }

  bool ReceiveDone(int peer, Ticket ticket) const override {
    const std::lock_guard<std::mutex> lock(world_.mutex_);
    return ticket < world_.At(peer, rank_).received;
  }

  // How many messages were posted.
  size_t sent() const { return sent_; }
  size_t wanted() const { return wanted_; }

  absl::Status Progress() override {
    std::unique_lock<std::mutex> lock(world_.mutex_);
    const bool moved =
        world_.Changed(rank_).wait_for(lock, std::chrono::seconds(20), [this] { return Move(); });
    return moved ? absl::OkStatus() : absl::DeadlineExceededError("the algorithm stands still");
  }

 private:
  bool Move() {
    bool moved = false;
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      SimulatedWorld::Channel& in = world_.At(peer, rank_);
      while (!in.under_way.empty() && !in.posted.empty() && Chance(moved)) {
        Deliver(in.under_way.front(), in.posted.front());
        in.under_way.pop_front();
        in.posted.pop_front();
        ++in.received;
        moved = true;
      }
      SimulatedWorld::Channel& out = world_.At(rank_, peer);
      while (!out.waiting.empty() && Chance(moved)) {
        out.under_way.emplace_back(out.waiting.front().begin(), out.waiting.front().end());
        out.waiting.pop_front();
        ++out.left;
        moved = true;
        world_.Changed(peer).notify_all();
      }
    }
    return moved;
  }

  bool Chance(bool moved) { return !moved || random_() % 3 != 0; }

  static void Deliver(const std::vector<std::byte>& bytes,
                      const collectives::ReceiveBuffer& buffer) {
    ASSERT_EQ(bytes.size(), buffer.size) << "both sides must agree on every size";
    if (buffer.operand == nullptr) {
      std::memcpy(buffer.data, bytes.data(), bytes.size());
      return;
    }
    const size_t element = reduce::SizeOf(buffer.reduction->type);
    ASSERT_EQ(bytes.size() % element, 0U) << "a value was cut";
    reduce::Reduce(*buffer.reduction, {buffer.operand, bytes.data()}, buffer.data,
                   bytes.size() / element, reduce::Stores::kNormal);
  }

  SimulatedWorld& world_;
  int rank_;
  std::mt19937 random_;
  size_t sent_ = 0;
  size_t wanted_ = 0;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_SIMULATED_MESSENGER_H_
