// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/clock.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace railhead {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A machine whose time goes as the test says, with ticks of 0.4 ns.
struct Machine {
  bool has_ticks = true;
  int64_t now = 5 * kSecond;
  uint64_t ticks_before = 77;  // may change when it sleeps
  int looks = 0;

  uint64_t Ticks() const { return ticks_before + static_cast<uint64_t>(now) * 5 / 2; }
};

struct Source {
  Machine* machine;
  bool HasTicks() const { return machine->has_ticks; }
  uint64_t Ticks() const { return machine->Ticks(); }
  int64_t Steady() const {
    ++machine->looks;
    return machine->now;
  }
};

// How far a reading is off, in nanoseconds.
int64_t Error(TickingClock<Source>& clock, const Machine& machine) {
  return std::abs(clock.Now() - machine.now);
}

TEST(ClockTest, CountsTicksAndSeldomLooksAtTheSystemsClock) {
  Machine machine;
  TickingClock<Source> clock{Source{&machine}};
  for (int i = 0; i < 20; ++i, machine.now += 1'000'000) ASSERT_LE(Error(clock, machine), 10);
  machine.looks = 0;
  for (int i = 0; i < 1'000'000; ++i, machine.now += 1000) ASSERT_LE(Error(clock, machine), 10);
  EXPECT_GE(machine.looks, 40);
  EXPECT_LE(machine.looks, 60);
}

TEST(ClockTest, LearnsNothingOfTicksFromASleepOfTheMachine) {
  Machine machine;
  TickingClock<Source> clock{Source{&machine}};
  for (int i = 0; i < 100; ++i, machine.now += 1'000'000) ASSERT_LE(Error(clock, machine), 10);
  machine.now += 20'000'000;
  machine.ticks_before -= machine.Ticks();
  for (int i = 0; i < 100; ++i, machine.now += 1'000'000) ASSERT_LE(Error(clock, machine), 10);
  machine.now += 20'000'000;
  machine.ticks_before += 1'000'000'000'000;
  for (int i = 0; i < 100; ++i, machine.now += 1'000'000) ASSERT_LE(Error(clock, machine), 10);
}

TEST(ClockTest, AsksTheSystemWhereTicksSayNothing) {
  Machine machine;
  machine.has_ticks = false;
  TickingClock<Source> clock{Source{&machine}};
  for (int i = 0; i < 100; ++i, machine.now += 1'000'000) ASSERT_EQ(Error(clock, machine), 0);
  EXPECT_EQ(machine.looks, 100);
}

}  // namespace
}  // namespace railhead
