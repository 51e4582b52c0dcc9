// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/rail_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace railhead::rails {
namespace {

constexpr absl::Duration kStep = absl::Microseconds(50);
const double kStepSeconds = absl::ToDoubleSeconds(kStep);

// A rail that sends `rate` bytes a second, has `pipe` seconds of them on their way, and takes a
// chunk whenever it holds less unsent than it may. What has arrived shows when it is `lump` bytes.
struct SimulatedRail {
  double rate = 0;
  double pipe = 0;
  double lump = 0;
  double backlog = 0;
  double hidden = 0;
  double delivered = 0;
};

class Simulation {
 public:
  Simulation(std::vector<SimulatedRail> rails, uint32_t seed)
      : rails_(std::move(rails)), scheduler_(rails_.size()), random_(seed) {}

  // Moves `bytes`; returns how long that took, and how long it would have taken a fluid.
  struct Times {
    double real = 0;
    double fluid = 0;
  };
  Times Transfer(double bytes, double changes_per_second) {
    Times times;
    double left = bytes;
    double fluid_left = bytes;
    const absl::Time start = now_;
    while (left > 0 || Busy()) {
      Look(left);
      double capacity = 0;
      for (SimulatedRail& rail : rails_) {
        const double arrived = std::min(rail.backlog, rail.rate * kStepSeconds);
        rail.backlog -= arrived;
        rail.hidden += arrived;
        if (rail.hidden >= rail.lump || rail.backlog == 0) {
          rail.delivered += std::exchange(rail.hidden, 0);
        }
        capacity += rail.rate * kStepSeconds;
      }
      if (fluid_left > 0) times.fluid += kStepSeconds * std::min(1.0, fluid_left / capacity);
      fluid_left -= capacity;
      now_ += kStep;
      if (Chance() < changes_per_second * kStepSeconds) {
        SimulatedRail& rail = rails_[random_() % rails_.size()];
        rail.rate = std::clamp(rail.rate * (0.5 + 1.5 * Chance()), 2e6, 200e6);
      }
    }
    times.real = absl::ToDoubleSeconds(now_ - start);
    return times;
  }

  void SetRate(size_t rail, double rate) { rails_[rail].rate = rate; }
  const RailScheduler& shares() const { return scheduler_; }
  // The longest that a rail needed for what it held, in seconds, since the last call.
  double LargestQueue() { return std::exchange(largest_queue_, 0); }

 private:
  bool Busy() const {
    return std::any_of(rails_.begin(), rails_.end(),
                       [](const SimulatedRail& rail) { return rail.backlog > 0; });
  }
  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  void Look(double& left) {
    for (size_t i = 0; i < rails_.size(); ++i) {
      SimulatedRail& rail = rails_[i];
      // Links send headers of their own, too.
      if (rail.backlog > 0) rail.backlog += rail.rate * kStepSeconds / 1000;
      scheduler_.Observe(i, now_, static_cast<uint64_t>(rail.backlog + rail.hidden),
                         static_cast<uint64_t>(rail.delivered));
      largest_queue_ = std::max(largest_queue_, rail.backlog / rail.rate);
      scheduler_.SetFull(i, false);
    }
    while (left > 0) {
      const auto chunk = static_cast<size_t>(std::min(left, 262144.0));
      const std::optional<size_t> rail = scheduler_.Pick(chunk, true, static_cast<uint64_t>(left));
      if (!rail.has_value()) return;
      SimulatedRail& taker = rails_[*rail];
      if (taker.backlog - taker.rate * taker.pipe >= static_cast<double>(scheduler_.Hold(*rail))) {
        scheduler_.SetFull(*rail, true);
        continue;
      }
      const size_t piece = std::min(chunk, scheduler_.Piece(*rail));
      scheduler_.Give(*rail, piece);
      taker.backlog += static_cast<double>(piece);
      left -= static_cast<double>(piece);
    }
  }

  std::vector<SimulatedRail> rails_;
  RailScheduler scheduler_;
  std::mt19937 random_;
  absl::Time now_ = absl::UnixEpoch();
  double largest_queue_ = 0;
};

TEST(RailSchedulerTest, RailsOfAnyRatesFinishTogether) {
  for (const std::vector<double>& rates : {std::vector<double>{50e6, 50e6},
                                           {50e6, 12.5e6},
                                           {50e6, 25e6, 5e6},
                                           {125e6, 1e6},
                                           {10e6, 10e6, 10e6, 10e6},
                                           {1e9, 250e6}}) {
    for (const double pipe : {0.0, 0.0005, 0.005}) {
      std::vector<SimulatedRail> rails;
      rails.reserve(rates.size());
      for (const double rate : rates) rails.push_back({rate, pipe, 0});
      Simulation simulation(rails, 1);
      simulation.Transfer(8 << 20, 0);  // measures
      const Simulation::Times times = simulation.Transfer(8 << 20, 0);
      // What is on its way has to arrive, too.
      EXPECT_LT(times.real, times.fluid * 1.03 + 0.001)
          << absl::StrJoin(rates, ":") << ", pipe " << pipe;
      for (size_t i = 0; i < rates.size(); ++i) {
        EXPECT_NEAR(simulation.shares().Rate(i) / rates[i], 1, 0.2) << i;
      }
    }
  }
}

TEST(RailSchedulerTest, DeliveriesMayShowInLumps) {
  for (const std::vector<double>& rates :
       {std::vector<double>{50e6, 12.5e6}, {12.5e6, 12.5e6, 12.5e6, 12.5e6}, {31e6, 16e6, 6e6}}) {
    std::vector<SimulatedRail> rails;
    rails.reserve(rates.size());
    for (const double rate : rates) rails.push_back({rate, 0.0005, 64 << 10});
    Simulation simulation(rails, 1);
    simulation.Transfer(8 << 20, 0);
    const Simulation::Times times = simulation.Transfer(8 << 20, 0);
    EXPECT_LT(times.real, times.fluid * 1.03 + 0.001) << absl::StrJoin(rates, ":");
    for (size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(simulation.shares().Rate(i) / rates[i], 1, 0.2) << i;
    }
  }
}

// A network that takes everything loses what does not fit into its queues.
TEST(RailSchedulerTest, ARailHoldsNoMoreThanKeepsItBusy) {
  Simulation simulation({{50e6, 1, 64 << 10}, {12.5e6, 1, 64 << 10}}, 1);
  simulation.Transfer(8 << 20, 0);  // measures
  simulation.LargestQueue();
  const Simulation::Times times = simulation.Transfer(32 << 20, 0);
  EXPECT_LT(simulation.LargestQueue(), 0.015);
  EXPECT_LT(times.real, times.fluid * 1.02 + 0.001);
}

// However late what has arrived shows: a slow rail is known after its first operation, and holds
// little from then on.
TEST(RailSchedulerTest, SlowRailsAreNotFlooded) {
  for (const double lump : {16e3, 64e3, 1e9}) {
    Simulation simulation({{1e6, 0.001, lump}, {1e6, 0.001, lump}}, 1);
    simulation.Transfer(512 << 10, 0);
    EXPECT_LT(simulation.LargestQueue(), 0.14) << "lump " << lump;
    for (int operation = 0; operation < 10; ++operation) {
      simulation.Transfer(512 << 10, 0);
      EXPECT_LT(simulation.LargestQueue(), 0.05) << "lump " << lump << " operation " << operation;
    }
  }
}

TEST(RailSchedulerTest, RandomRatesThatChangeAtRandomStayNearTheOptimum) {
  std::mt19937 random(3);
  for (uint32_t round = 0; round < 200; ++round) {
    std::vector<SimulatedRail> rails(2 + random() % 4);
    for (SimulatedRail& rail : rails) {
      rail.rate = 2e6 * static_cast<double>(1 + random() % 100);
      rail.pipe = 1e-6 * static_cast<double>(random() % 3000);
    }
    Simulation simulation(rails, round);
    simulation.Transfer(4 << 20, 0);
    const Simulation::Times times = simulation.Transfer(64 << 20, 10);
    EXPECT_LT(times.real, times.fluid * 1.05 + 0.01) << "round " << round;
  }
}

TEST(RailSchedulerTest, TheLastChunkWaitsForTheFastRail) {
  RailScheduler shares(2);
  absl::Time now = absl::UnixEpoch();
  // Rail 0 does 100 MB/s, rail 1 does 1 MB/s.
  const std::array<uint64_t, 2> each = {100000, 1000};
  for (uint64_t i = 1; i <= 100; ++i) {
    for (const size_t rail : {0, 1}) {
      shares.Give(rail, each[rail]);
      shares.Observe(rail, now, 10000, i * each[rail]);
    }
    now += absl::Milliseconds(1);
  }
  shares.Observe(0, now, 100000, 101 * each[0]);
  shares.Observe(1, now, 0, 100 * each[1] + 10000);
  shares.SetFull(0, true);
  EXPECT_EQ(shares.Pick(100000, true, 100000), std::nullopt);
  shares.SetFull(0, false);
  EXPECT_EQ(shares.Pick(100000, true, 100000), 0U);
  // With much more to do even the slow one helps.
  shares.SetFull(0, true);
  EXPECT_EQ(shares.Pick(100000, true, 100 << 20), 1U);
}

TEST(RailSchedulerTest, ARailThatIsDownGetsNothing) {
  RailScheduler shares(2);
  shares.SetUp(0, false);
  EXPECT_EQ(shares.Pick(8, true, 8), 1U);
  shares.SetUp(1, false);
  EXPECT_EQ(shares.Pick(8, true, 8), std::nullopt);
  shares.SetUp(0, true);
  EXPECT_EQ(shares.Pick(8, true, 8), 0U);
}

TEST(RailSchedulerTest, AcknowledgementsTravelWithChunks) {
  RailScheduler shares(3);
  shares.SetOwing(2, true);
  EXPECT_EQ(shares.Pick(8, true, 8), 2U);
  shares.Give(2, 8);
  EXPECT_EQ(shares.Pick(8, true, 8), 0U) << "it has told the peer";
}

// Two ranks that answer each other stay on one rail for a while, and use both in the end.
TEST(RailSchedulerTest, WhoAlwaysOwesGetsNoMoreThanOthers) {
  RailScheduler shares(2);
  std::array<double, 2> given = {};
  for (int i = 0; i < 10000; ++i) {
    shares.SetOwing(1, true);
    const std::optional<size_t> rail = shares.Pick(1000, true, 1000);
    ASSERT_TRUE(rail.has_value());
    shares.Give(*rail, 1000);
    given[*rail] += 1000;
    for (const size_t r : {0, 1}) {
      shares.Observe(r, absl::UnixEpoch() + i * kStep, 0, static_cast<uint64_t>(given[r]));
    }
    ASSERT_LE(std::abs(given[1] - given[0]), 70000);
  }
  EXPECT_GE(given[1] - given[0], 50000);
}

// Small frames that overlap take as long as the way is: that is not the rail's rate.
TEST(RailSchedulerTest, SmallFramesDoNotMakeARailSlow) {
  RailScheduler shares(2);
  absl::Time now = absl::UnixEpoch();
  uint64_t delivered = 0;
  for (int i = 0; i < 100; ++i) {
    now += absl::Milliseconds(1);
    delivered += 50000;
    for (const size_t rail : {0, 1}) {
      shares.Give(rail, 50000);
      shares.Observe(rail, now, 100000, delivered);
    }
  }
  const double before = shares.Rate(1);
  for (int i = 0; i < 1000; ++i) {
    now += absl::Milliseconds(2);
    delivered += 100;
    shares.Give(1, 100);
    shares.Observe(1, now, 100, delivered);
  }
  EXPECT_NEAR(shares.Rate(1) / before, 1, 0.01);
}

// What a shaper lets through at once after a rest is not the rail's rate: taken for it, now one and
// now the other of two equal rails would get most of every transfer.
TEST(RailSchedulerTest, ABurstAfterARestIsNotTheRate) {
  RailScheduler shares(2);
  absl::Time now = absl::UnixEpoch();
  uint64_t delivered = 0;
  const auto deliver = [&](absl::Duration after, uint64_t bytes, uint64_t backlog) {
    now += after;
    delivered += bytes;
    shares.Observe(0, now, backlog, delivered);
  };
  shares.Give(0, 1 << 20);
  for (int i = 0; i < 200; ++i) deliver(absl::Milliseconds(1), 1000, 100000);
  EXPECT_NEAR(shares.Rate(0) / 1e6, 1, 0.01);
  for (int i = 0; i < 20; ++i) {
    deliver(absl::Milliseconds(1), 0, 0);
    deliver(absl::Milliseconds(32), 0, 0);
    shares.Give(0, 32000);
    deliver(absl::ZeroDuration(), 0, 32000);
    deliver(absl::Milliseconds(3), 16000, 16000);
    deliver(absl::Milliseconds(1), 16000, 0);
    EXPECT_NEAR(shares.Rate(0) / 1e6, 1, 0.01) << i;
  }
  // Faster for longer than a rest explains, it is faster.
  shares.Give(0, 1 << 20);
  for (int i = 0; i < 100; ++i) deliver(absl::Milliseconds(1), 5000, 100000);
  EXPECT_NEAR(shares.Rate(0) / 5e6, 1, 0.1);
}

// Somebody who sleeps until a frame comes sees late what has arrived before.
TEST(RailSchedulerTest, ALateLookIsNotSlowness) {
  RailScheduler shares(2);
  absl::Time now = absl::UnixEpoch();
  uint64_t delivered = 0;
  const auto deliver = [&](absl::Duration after, uint64_t bytes, uint64_t backlog) {
    now += after;
    delivered += bytes;
    shares.Observe(0, now, backlog, delivered);
  };
  shares.Give(0, 1 << 20);
  for (int i = 0; i < 200; ++i) deliver(absl::Milliseconds(1), 1000, 100000);
  for (int i = 0; i < 20; ++i) {
    deliver(absl::Milliseconds(1), 0, 0);
    shares.Give(0, 32000);
    deliver(absl::ZeroDuration(), 0, 32000);
    deliver(absl::Milliseconds(2), 0, 32000);
    deliver(absl::Milliseconds(25), 16000, 16000);  // after 16 ms
    deliver(absl::Milliseconds(20), 16000, 0);      // after 5 ms more
    EXPECT_NEAR(shares.Rate(0) / 1e6, 1, 0.1) << i;
  }
  // A rail that is as slow as it seems is not seen late, but late again and again.
  shares.Give(0, 1 << 20);
  for (int i = 0; i < 20; ++i) deliver(absl::Milliseconds(25), 5000, 100000);
  EXPECT_NEAR(shares.Rate(0) / 0.2e6, 1, 0.1);
}

// A rail that stood still for a while is given something again, though what is sent is short.
TEST(RailSchedulerTest, ABadMomentIsForgotten) {
  Simulation simulation({{50e6, 0, 0}, {50e6, 0, 0}}, 1);
  simulation.Transfer(8 << 20, 0);
  simulation.SetRate(1, 1000);
  simulation.Transfer(32 << 20, 0);
  EXPECT_LT(simulation.shares().Rate(1), 1e6);
  simulation.SetRate(1, 50e6);
  double taken = 0;
  for (int i = 0; i < 100; ++i) taken = simulation.Transfer(512 << 10, 0).real;
  EXPECT_LT(taken, 0.0052 * 1.3);
}

TEST(RailSchedulerTest, APeerThatStopsReadingDoesNotMakeTheRailsSlow) {
  RailScheduler shares(2);
  absl::Time now = absl::UnixEpoch();
  uint64_t delivered = 0;
  const auto run = [&](int steps, size_t bytes) {
    for (int i = 0; i < steps; ++i) {
      now += absl::Milliseconds(1);
      delivered += bytes;
      for (const size_t rail : {0, 1}) {
        shares.Give(rail, bytes);
        shares.Observe(rail, now, 200000, delivered);
      }
    }
  };
  shares.Give(0, 200000);
  shares.Give(1, 200000);
  run(100, 50000);
  const double before = shares.Rate(0);
  run(3000, 0);
  EXPECT_NEAR(shares.Rate(0) / before, 1, 0.1);
  run(5, 50000);
  EXPECT_NEAR(shares.Rate(0) / before, 1, 0.2);
}

TEST(RailSchedulerTest, AStandbyRailTakesOverWhileAllOthersAreDown) {
  RailScheduler scheduler(3);
  scheduler.SetStandby(1, true);
  scheduler.SetStandby(2, true);
  constexpr size_t kChunk = 4096;
  const auto pick = [&] { return scheduler.Pick(kChunk, true, kChunk); };
  EXPECT_EQ(pick(), 0U);
  scheduler.SetFull(0, true);
  EXPECT_EQ(pick(), std::nullopt) << "it waits for the first rail";
  scheduler.SetFull(0, false);
  scheduler.SetUp(0, false);
  EXPECT_EQ(pick(), 1U);
  scheduler.SetUp(1, false);
  EXPECT_EQ(pick(), 2U);
  scheduler.SetUp(1, true);
  scheduler.SetUp(0, true);
  EXPECT_EQ(pick(), 0U) << "and is a standby again";
  scheduler.SetStandby(1, false);
  scheduler.SetFull(0, true);
  EXPECT_EQ(pick(), 1U);
}

}  // namespace
}  // namespace railhead::rails
