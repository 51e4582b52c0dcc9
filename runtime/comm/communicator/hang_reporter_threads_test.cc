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
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/congestion.h"
#include "runtime/comm/communicator/hang_reporter.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/recorder/position.h"
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
    options.awaited = [] { return std::vector<int>(); };
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
  // The rank is alone, and has called nothing.
  HangReporterReportsTest() {
    bootstrap::JoinOptions alone;
    alone.world_size = 1;
    watch_ = *bootstrap::Watch::Start(*bootstrap::Bootstrap::Join(std::move(alone)));
  }

  void Hear(absl::Duration ago, bool waits) {
    reporter_.Hear(recorder::Encode({"a report", {waits}, true, false, {{0, 3}, {1, 2}}}),
                   MonotonicNow() - ago);
  }
  bool Waits() { return reporter_.WaitsForCallers(*watch_); }

  HangReporter reporter_{Options()};
  std::unique_ptr<bootstrap::Watch> watch_;
};

TEST_F(HangReporterReportsTest, TheLastReportCounts) {
  Hear(absl::Seconds(1), true);
  Hear(absl::ZeroDuration(), false);
  EXPECT_FALSE(Waits());
  Hear(absl::ZeroDuration(), true);
  EXPECT_TRUE(Waits());
  EXPECT_EQ(reporter_.StuckWith(), std::vector<int>{3});
}

// Or a rank that had called a timeout ago, less a moment, would count as one that has only just
// called, for another timeout.
TEST_F(HangReporterReportsTest, AWaitThatHasTimedOutAsksAnew) {
  Hear(absl::ZeroDuration(), true);
  watch_->Attend(&reporter_);
  EXPECT_FALSE(Waits());
  watch_->Attend(nullptr);
}

// Whoever does not answer a query fails the job, if that lasts. An old report says nothing.
TEST_F(HangReporterReportsTest, WithoutAReportARankWaits) {
  EXPECT_TRUE(Waits());
  Hear(absl::Seconds(16), false);
  EXPECT_TRUE(Waits());
  EXPECT_TRUE(reporter_.StuckWith().empty());
  Hear(absl::Seconds(10), false);
  EXPECT_FALSE(Waits());
}

// ---- When a rank that stands still fails the job ----

// The root's reporter as a watch uses it, and the answers of other ranks, in virtual time. The root
// waits in a call.
class VirtualWorld {
 public:
  VirtualWorld(int world, absl::Duration timeout)
      : world_(world), timeout_(timeout), reporter_(Options()), pace_(reporter_.pace()) {
    recorder_.Begin(collectives::Collective::kBarrier, collectives::Algorithm::kRing, {}, 0,
                    absl::ToUnixNanos(now_), {});
  }

  // Returns whether a rank answers the query that began then.
  std::function<bool(int rank, absl::Time asked)> answers = [](int, absl::Time) { return true; };

  absl::Time now() const { return now_; }
  absl::Duration look() const { return pace_.look; }
  // Advances by one look. Returns the verdict.
  absl::Status Step() {
    now_ += pace_.look;
    ++moved_.sent;
    if (!still_) flow_ = moved_;
    const bool wants = reporter_.Look(now_);
    if (!asked_.has_value() && wants && now_ >= told_ + pace_.fresh) {
      asked_ = now_;
      complete_ = true;
      for (int rank = 1; rank < world_; ++rank) complete_ = complete_ && answers(rank, now_);
    }
    const absl::Duration gather = pace_.answer * bootstrap::Height(0, world_);
    if (asked_.has_value() && (complete_ || now_ >= *asked_ + gather)) Conclude();
    return reporter_.Verdict();
  }
  // From now on nothing moves.
  void StandStill() { still_ = true; }
  int queries() const { return queries_; }

 private:
  HangReporter::Options Options() {
    HangReporter::Options options;
    options.timeout = timeout_;
    options.about.world_size = world_;
    options.recorder = &recorder_;
    options.flows = [this] { return std::vector<Flow>{{1, 0, flow_}}; };
    options.awaited = [] { return std::vector<int>(); };
    options.log = Logger(LogLevel::kError, "");
    return options;
  }
  void Conclude() {
    ++queries_;
    std::vector<bootstrap::HangObserver::Said> said(static_cast<size_t>(world_));
    for (int rank = 0; rank < world_; ++rank) {
      bootstrap::HangObserver::Said& one = said[static_cast<size_t>(rank)];
      one.name = absl::StrCat("rank ", rank);
      if (rank == 0 || answers(rank, *asked_)) {
        one.answer = {
            bootstrap::Inquiry::Answer::How::kGiven,
            rank == 0 ? reporter_.Testify(now_, 1) : recorder::Encode(recorder::Position())};
      } else {
        one.answer.how = bootstrap::Inquiry::Answer::How::kSilent;
      }
    }
    const std::string report = reporter_.Conclude(said, *asked_, now_);
    asked_.reset();
    told_ = now_;
    reporter_.Hear(report, now_);
  }

  const int world_;
  const absl::Duration timeout_;
  recorder::FlightRecorder recorder_;
  Traffic moved_;
  Traffic flow_;
  bool still_ = false;
  HangReporter reporter_;
  const bootstrap::HangObserver::Pace pace_;
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  absl::Time told_ = absl::InfinitePast();
  std::optional<absl::Time> asked_;
  bool complete_ = true;
  int queries_ = 0;
};

// Whenever it stops: as the call in which it is stops, too, or long after the others began to wait.
TEST(HangReporterSilenceTest, ARankThatStopsFailsTheJobWithinTheBound) {
  for (const int world : {2, 5, 22, 4096}) {
    const absl::Duration timeout = absl::Seconds(world == 4096 ? 60 : 6);
    for (const int waited : {0, 1, 3, 50}) {
      for (int phase = 0; phase < (world == 4096 ? 2 : 40); ++phase) {
        VirtualWorld ranks(world, timeout);
        for (int i = 0; i < 60; ++i) ASSERT_TRUE(ranks.Step().ok());
        if (waited > 0) ranks.StandStill();
        for (int i = 0; i < 3 * waited + phase; ++i) ASSERT_TRUE(ranks.Step().ok());
        ranks.StandStill();
        // It stops between two looks.
        const absl::Time stop = ranks.now() + ranks.look() * (phase % 4) / 4;
        const int victim = 1 + phase % (world - 1);
        ranks.answers = [&](int rank, absl::Time asked) { return rank != victim || asked < stop; };
        absl::Status verdict;
        while (verdict.ok() && ranks.now() < stop + 3 * timeout) verdict = ranks.Step();
        const double ratio = absl::FDivDuration(ranks.now() - stop, timeout);
        EXPECT_THAT(std::string(verdict.message()),
                    HasSubstr(absl::StrCat("rank ", victim, " does not answer")));
        EXPECT_GE(ratio, 1) << world << " " << waited << " " << phase;
        EXPECT_LE(ratio, 1.16) << world << " " << waited << " " << phase;
      }
    }
  }
}

// A busy machine: ranks miss queries, each for less than the timeout.
TEST(HangReporterSilenceTest, ARankThatAnswersWithinTheTimeoutDoesNotFailTheJob) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const absl::Duration timeout = absl::Seconds(1 + random() % 20);
    VirtualWorld ranks(2 + static_cast<int>(random() % 8), timeout);
    struct Away {
      absl::Time until = absl::InfinitePast();
      absl::Time answered = absl::InfinitePast();
      bool owes = false;
    };
    std::map<int, Away> aways;
    ranks.answers = [&](int rank, absl::Time asked) {
      Away& away = aways[rank];
      if (asked == away.answered) return true;
      if (asked <= away.until) return false;
      // It is away for up to 0.8 timeouts, and then answers a query at least.
      if (!away.owes && random() % 3 == 0) {
        away = {asked + timeout * 0.8 * (static_cast<double>(random() % 100) / 100), {}, true};
        return false;
      }
      away.owes = false;
      away.answered = asked;
      return true;
    };
    ranks.StandStill();
    for (int i = 0; i < 2000; ++i) {
      const absl::Status verdict = ranks.Step();
      ASSERT_TRUE(verdict.ok()) << seed << " " << i << ": " << verdict;
    }
    EXPECT_GT(ranks.queries(), 100);
  }
}

}  // namespace
}  // namespace railhead::comm
