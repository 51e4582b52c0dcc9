// SPDX-License-Identifier: Apache-2.0
//
// The time of day is set while a node reports: reports go on, and no file becomes older by that.
// This program has a time of day of its own, which the tests set: the machine's stays.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/cluster/node_reporter.h"
#include "kube/monotonic.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {
namespace {

// By how many seconds the time of day is ahead of the machine's.
std::atomic<int64_t>& Ahead() {
  static std::atomic<int64_t> seconds = 0;
  return seconds;
}

class WallClockTest : public ::testing::TestWithParam<int> {
 protected:
  void TearDown() override { Ahead() = 0; }
};
INSTANTIATE_TEST_SUITE_P(Steps, WallClockTest, ::testing::Values(-3600, 3600, 86400));

NodeFacts FactsOf(const std::string& rails) {
  NodeFacts facts;
  facts.labels = {{"railhead.io/rails", rails}};
  facts.annotation = "{}";
  return facts;
}

TEST_P(WallClockTest, ReportsOfANodeGoOn) {
  kube::testing::FakeApi api;
  const kube::ObjectRef node = {"v1", "nodes", "", "node-1"};
  api.Put(node, {{"metadata", {{"name", "node-1"}}}});
  NodeReporter::Options options;
  options.node = "node-1";
  options.pause = absl::Milliseconds(100);
  NodeReporter reporter(options, &api);
  for (const char* rails : {"1", "2", "3"}) {
    reporter.Publish(FactsOf(rails));
    ASSERT_TRUE(reporter.Flush(absl::Seconds(20))) << rails;
    EXPECT_EQ(api.At(node)["metadata"]["labels"]["railhead.io/rails"], rails);
    Ahead() += GetParam();
  }
}

TEST_P(WallClockTest, ASteadyTimeOfDayIsThatOfItsBeginning) {
  const auto steady = kube::SteadyTimeOfDay();
  const absl::Time before = absl::Now();
  Ahead() += GetParam();
  EXPECT_LT(absl::AbsDuration(steady() - before), absl::Minutes(30));
}

}  // namespace
}  // namespace railhead::device_plugin

// In place of the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, time);  // NOLINT(google-runtime-int)
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += railhead::device_plugin::Ahead();
  return static_cast<int>(result);
}
