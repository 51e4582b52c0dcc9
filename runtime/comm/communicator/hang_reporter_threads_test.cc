// SPDX-License-Identifier: Apache-2.0
//
// What a hang reporter leaves to other threads: the watchdog's thread, which all communicators of a
// process share, waits neither for an adapter nor for a file system, also where no thread can be
// started. And what it makes of several reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/congestion.h"
#include "runtime/comm/communicator/hang_reporter.h"
#include "runtime/recorder/waiting.h"
#include "runtime/testing/no_threads.h"

namespace railhead::comm {
namespace {

using ::testing::HasSubstr;

class HangReporterThreadsTest : public ::testing::Test {
 protected:
  // A test that waits after all is ended.
  void SetUp() override { ::alarm(20); }
  void TearDown() override { ::alarm(0); }

  HangReporter::Options Options() const {
    HangReporter::Options options;
    options.timeout = absl::Seconds(60);
    options.recorder = &recorder_;
    options.flows = [] { return std::vector<Flow>(); };
    options.log = Logger(LogLevel::kWarn, "rank 3");
    return options;
  }

 private:
  const recorder::FlightRecorder recorder_;
};

// The firmware of an adapter hangs.
TEST_F(HangReporterThreadsTest, APortThatDoesNotAnswerHoldsUpNeitherALookNorTheEnd) {
  struct Port {
    std::atomic<int> reads = 0;
    std::promise<void> answers;
  };
  const auto port = std::make_shared<Port>();
  {
    HangReporter::Options options = Options();
    options.ports = [port] {
      ++port->reads;
      port->answers.get_future().wait();
      return std::vector<metrics::PortSnapshot>();
    };
    HangReporter reporter(std::move(options));
    const absl::Time start = MonotonicNow();
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(reporter.Look(start + i * 2 * Congestion::kPace));
    }
  }
  port->answers.set_value();
  AwaitBackground();
  // No second one while the first has not ended.
  EXPECT_EQ(port->reads, 1);
}

TEST_F(HangReporterThreadsTest, WithoutAThreadPortsAreNotRead) {
  int reads = 0;
  HangReporter::Options options = Options();
  options.ports = [&reads] {
    ++reads;
    return std::vector<metrics::PortSnapshot>();
  };
  HangReporter reporter(std::move(options));
  const absl::Time start = MonotonicNow();
  {
    const testing::NoThreads none;
    EXPECT_FALSE(reporter.Look(start));
    EXPECT_FALSE(reporter.Look(start + Congestion::kPace));
  }
  EXPECT_EQ(reads, 0);
  EXPECT_FALSE(reporter.Look(start + 2 * Congestion::kPace));
  AwaitBackground();
  EXPECT_EQ(reads, 1);
}

// The file is a pipe without a reader: opening it blocks, as on a hanging file system.
TEST_F(HangReporterThreadsTest, WithoutAThreadNoFlightFileIsWritten) {
  std::string folder = absl::StrCat(::testing::TempDir(), "/flight-XXXXXX");
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  HangReporter::Options options = Options();
  options.path = absl::StrCat(folder, "/flight.json");
  const std::string draft = absl::StrCat(options.path, ".part");
  ASSERT_EQ(::mkfifo(draft.c_str(), 0600), 0);
  ::testing::internal::CaptureStderr();
  {
    HangReporter reporter(std::move(options));
    const testing::NoThreads none;
    reporter.Failed(absl::InternalError("rank 1 failed"));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("RAILHEAD_FLIGHT_RECORDER: no file is written: cannot start a thread"));
  ::unlink(draft.c_str());
  ::rmdir(folder.c_str());
}

// ---- What reports come to ----

class HangReporterReportsTest : public HangReporterThreadsTest {
 protected:
  HangReporterReportsTest() {
    bootstrap::JoinOptions alone;
    alone.world_size = 1;
    watch_ = *bootstrap::Watch::Start(*bootstrap::Bootstrap::Join(std::move(alone)));
  }

  void Hear(absl::Duration ago, bool waits, bool all_answer) {
    reporter_.Hear(recorder::Encode({"a report", {waits}, false, all_answer}),
                   MonotonicNow() - ago);
  }
  // "waits", "answer", both or neither.
  std::string Known() {
    const HangReporter::Heard heard = reporter_.Ask(*watch_);
    return absl::StrCat(heard.waits_for_callers ? "waits " : "", heard.all_answer ? "answer" : "");
  }

 private:
  std::unique_ptr<bootstrap::Watch> watch_;
  HangReporter reporter_{Options()};
};

// On a busy machine a rank may not run for the moment in which it is asked.
TEST_F(HangReporterReportsTest, WhoMissesAQueryIsAlive) {
  Hear(absl::Seconds(100), true, true);
  Hear(absl::ZeroDuration(), false, false);
  EXPECT_EQ(Known(), "waits answer");
}

TEST_F(HangReporterReportsTest, WhoHasNotAnsweredForTwoTimeoutsDoesNotAnswer) {
  Hear(absl::Seconds(121), true, true);
  Hear(absl::ZeroDuration(), false, false);
  EXPECT_EQ(Known(), "");
}

TEST_F(HangReporterReportsTest, WhatAllAnswerLaterCounts) {
  Hear(absl::Seconds(100), true, true);
  Hear(absl::Seconds(50), false, true);
  Hear(absl::ZeroDuration(), false, false);
  EXPECT_EQ(Known(), "answer");
}

}  // namespace
}  // namespace railhead::comm
