// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/congestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/comm/communicator/hang_reporter.h"

namespace railhead::comm {
namespace {

using fabric::PortCounters;
using metrics::PortSnapshot;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

PortSnapshot Port(int rail, const PortCounters& counters) {
  return {{rail, "mlx5_0", 1, "verbs"}, counters};
}

// Returns the warnings about rail 0, with counters `before` and, some time later, `after`.
std::vector<std::string> Say(const PortCounters& before, const PortCounters& after,
                             absl::Duration later = absl::Seconds(5)) {
  Congestion congestion;
  EXPECT_THAT(congestion.Look(kStart, {Port(0, before)}), IsEmpty()) << "there is nothing before";
  return congestion.Look(kStart + later, {Port(0, after)});
}

PortCounters With(fabric::PortCounter counter, std::optional<uint64_t> value) {
  PortCounters counters;
  counters.*counter = value;
  return counters;
}

TEST(CongestionTest, LossIsToldWithTheCounterTheRiseTheTimeAndTheFix) {
  PortCounters before;
  before.out_of_sequence = 1000;
  before.retries = 7;
  PortCounters after = before;
  after.out_of_sequence = 1250;
  after.retries = 107;
  EXPECT_THAT(
      Say(before, after),
      ElementsAre(
          "rail 0 (mlx5_0 port 1, verbs) is congested: out_of_sequence by 250, retries by 100 "
          "in 5.0 s (counted by the port for all its users, also other jobs); packets are "
          "lost in transit: make the rail's traffic class lossless on this NIC and on every switch "
          "port (PFC), or give its QoS class more buffer there"));
}

TEST(CongestionTest, MarksAloneHaveAnotherFix) {
  const auto said = Say(With(&PortCounters::cnp_handled, 5),
                        With(&PortCounters::cnp_handled, 20005), absl::Seconds(10));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], AllOf(HasSubstr("cnp_handled by 20000 in 10.0 s"), HasSubstr("ECN"),
                             HasSubstr("QoS class"), Not(HasSubstr("PFC"))));
}

// Ten losses, or a thousand marks, a second are noticeable; less is not.
TEST(CongestionTest, EverySignHasItsThreshold) {
  const std::vector<std::pair<fabric::PortCounter, uint64_t>> signs = {
      {&PortCounters::out_of_sequence, 50},   {&PortCounters::retries, 50},
      {&PortCounters::transmit_discards, 50}, {&PortCounters::receive_discards, 50},
      {&PortCounters::ecn_marked, 5000},      {&PortCounters::cnp_sent, 5000},
      {&PortCounters::cnp_handled, 5000}};
  for (const auto& [sign, rise] : signs) {
    EXPECT_EQ(Say(With(sign, 100), With(sign, 100 + rise)).size(), 1U) << rise;
    EXPECT_THAT(Say(With(sign, 100), With(sign, 100 + rise - 1)), IsEmpty()) << rise;
  }
}

TEST(CongestionTest, WhatIsNoCongestionIsNotTold) {
  for (const fabric::PortCounter counter :
       {&PortCounters::transmit_bytes, &PortCounters::receive_bytes, &PortCounters::transmit_waits,
        &PortCounters::symbol_errors}) {
    EXPECT_THAT(Say(With(counter, 0), With(counter, uint64_t{1} << 40)), IsEmpty());
  }
}

TEST(CongestionTest, ACounterThatIsNewGoneOrResetHasNotRisen) {
  const fabric::PortCounter counter = &PortCounters::retries;
  EXPECT_THAT(Say(With(counter, std::nullopt), With(counter, 1000000)), IsEmpty());
  EXPECT_THAT(Say(With(counter, 1000000), With(counter, std::nullopt)), IsEmpty());
  EXPECT_THAT(Say(With(counter, 1000000), With(counter, 3)), IsEmpty());
}

TEST(CongestionTest, ARailIsToldOnceInALongWhileAndOthersNonetheless) {
  Congestion congestion;
  absl::Time now = kStart;
  uint64_t lost = 0;
  int told = 0;
  const absl::Duration quiet = Congestion::kQuiet;
  // For three quiet intervals and one further call.
  for (; now <= kStart + 3 * quiet + Congestion::kPace; now += Congestion::kPace) {
    lost += 1000;
    for (const std::string& text :
         congestion.Look(now, {Port(0, With(&PortCounters::retries, lost))})) {
      EXPECT_THAT(text, HasSubstr("retries by 1000 in 5.0 s"));
      ++told;
    }
  }
  EXPECT_EQ(told, 4);
  Congestion two;
  const auto both = [&](uint64_t first, uint64_t second) {
    return std::vector<PortSnapshot>{Port(0, With(&PortCounters::retries, first)),
                                     Port(1, With(&PortCounters::retries, second))};
  };
  EXPECT_THAT(two.Look(kStart, both(0, 0)), IsEmpty());
  EXPECT_THAT(two.Look(kStart + absl::Seconds(5), both(1000, 0)), ElementsAre(HasSubstr("rail 0")));
  EXPECT_THAT(two.Look(kStart + absl::Seconds(10), both(2000, 1000)),
              ElementsAre(HasSubstr("rail 1")));
}

// A second call at the same time measures nothing.
TEST(CongestionTest, TimeMustHavePassed) {
  EXPECT_THAT(Say(With(&PortCounters::retries, 0), With(&PortCounters::retries, 1000),
                  absl::ZeroDuration()),
              IsEmpty());
}

// Reads the ports at most once per interval; the rank logs the warnings.
TEST(CongestionTest, TheHangReporterLooksNowAndThenAndLogs) {
  const recorder::FlightRecorder recorder;
  std::atomic<int> reads = 0;
  HangReporter::Options options;
  options.timeout = absl::Seconds(60);
  options.recorder = &recorder;
  options.flows = [] { return std::vector<Flow>(); };
  options.ports = [&reads] {
    const auto now = static_cast<uint64_t>(1000 * (reads + 1));
    std::vector<PortSnapshot> ports = {Port(2, With(&PortCounters::retries, now))};
    ++reads;
    return ports;
  };
  options.log = Logger(LogLevel::kWarn, "rank 3 (pod a on node b)");
  HangReporter reporter(std::move(options));
  ::testing::internal::CaptureStderr();
  const absl::Time patience = MonotonicNow() + absl::Seconds(60);
  for (int second = 0; second <= 20; ++second) {
    EXPECT_FALSE(reporter.Look(kStart + absl::Seconds(second)));
    // The end of a process waits a second for a reading, which may begin later on a busy machine.
    do {
      AwaitBackground();
    } while (reads < 1 + second / 5 && MonotonicNow() < patience);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(reads, 5);
  // Plus what the reading took.
  EXPECT_THAT(said,
              ::testing::ContainsRegex(
                  "^railhead: rank 3 \\(pod a on node b\\): warning: rail 2 \\(mlx5_0 port 1, "
                  "verbs\\) is congested: retries by 1000 in [0-9.]+ s"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace railhead::comm
