// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/net/address.h"
#include "runtime/net/event.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/relay.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// The watches of a world. Nobody goes on before all have begun: a rank that failed earlier would
// fail the others' Join.
class World {
 public:
  explicit World(int size) : size_(size), port_(FreePort()), host_port_(port_), all_(size) {}

  int port() const { return port_; }
  // Where the others find rank 0, before they start.
  void set_host_port(int port) { host_port_ = port; }

  std::unique_ptr<Watch> Start(int rank) {
    std::unique_ptr<Watch> watch = StartAlone(rank);
    all_.arrive_and_wait();
    return watch;
  }

 private:
  std::unique_ptr<Watch> StartAlone(int rank) const;

  int size_;
  int port_;
  int host_port_;
  std::barrier<> all_;
};

std::unique_ptr<Watch> World::StartAlone(int rank) const {
  JoinOptions options;
  options.rank = rank;
  options.world_size = size_;
  options.host = "127.0.0.1";
  options.port = rank == 0 ? port_ : host_port_;
  options.name = absl::StrCat("pod p", rank);
  options.deadline = In(20);
  absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(std::move(options));
  EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
  bootstrap->SetPlace(absl::StrCat("at ", rank));
  return *Watch::Start(*std::move(bootstrap));
}

// Returns an event that is readable when there is news.
std::shared_ptr<net::Event> NewsOf(Watch& watch) {
  auto news = std::make_shared<net::Event>(*net::Event::Open());
  watch.OnNews([news] { news->Signal(); });
  return news;
}

class WatchTest : public ::testing::TestWithParam<int> {};

TEST_P(WatchTest, WhoLeavesTogetherLeavesInPeace) {
  const int world = GetParam();
  World started(world);
  RunRanks(world, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    const absl::Time deadline = In(20);
    watch->Goodbye(deadline);
    EXPECT_LT(MonotonicNow(), deadline);
    EXPECT_FALSE(watch->failed());
    EXPECT_TRUE(watch->verdict().ok());
    return true;
  });
}

TEST_P(WatchTest, EachFindsAllOthers) {
  const int world = GetParam();
  World started(world);
  RunRanks(world, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    const std::shared_ptr<net::Event> news = NewsOf(*watch);
    const absl::Time deadline = In(20);
    for (int other = 0; other < world; ++other) {
      while (other != rank && MonotonicNow() < deadline) {
        news->Clear();
        const std::optional<std::string> place = watch->Locate(other);
        if (place.has_value()) {
          EXPECT_EQ(*place, absl::StrCat("at ", other));
          break;
        }
        EXPECT_TRUE(net::WaitReadable(news->fd(), deadline).ok());
      }
    }
    EXPECT_LT(MonotonicNow(), deadline);
    watch->Goodbye(deadline);
    return true;
  });
}

TEST_P(WatchTest, ADeathIsKnownToAllOthers) {
  const int world = GetParam();
  for (int victim = 0; victim < world; ++victim) {
    World started(world);
    RunRanks(world, [&](int rank) {
      const std::unique_ptr<Watch> watch = started.Start(rank);
      if (rank == victim) return true;  // gone without a goodbye
      EXPECT_TRUE(net::WaitReadable(NewsOf(*watch)->fd(), In(20)).ok());
      EXPECT_TRUE(watch->failed());
      EXPECT_THAT(std::string(watch->verdict().message()),
                  HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ") is gone")));
      return true;
    });
  }
}

TEST_P(WatchTest, AnAnnouncedFailureIsTheSameOnAll) {
  const int world = GetParam();
  for (int culprit = 0; culprit < world; ++culprit) {
    World started(world);
    const absl::Status failure =
        absl::InternalError(absl::StrCat("rank ", culprit, ": rail 1 is down"));
    RunRanks(world, [&](int rank) {
      const std::unique_ptr<Watch> watch = started.Start(rank);
      if (rank == culprit) {
        EXPECT_EQ(watch->Announce(failure), failure);
      }
      EXPECT_TRUE(net::WaitReadable(NewsOf(*watch)->fd(), In(20)).ok());
      EXPECT_EQ(watch->verdict(), failure);
      return true;
    });
  }
}

// A rank that hears nothing from rank 0 for a second judges alone. Where the thread that all ranks
// of this process share does not run for so long, nothing is proven.
TEST_P(WatchTest, ManyFailuresHaveOneVerdict) {
  const int world = GetParam();
  bool in_time = false;
  for (int time = 0; time < 20 && !in_time; ++time) {
    World started(world);
    std::atomic<bool> late = false;
    const std::vector<absl::Status> verdicts = RunRanks(world, [&](int rank) {
      const std::unique_ptr<Watch> watch = started.Start(rank);
      const absl::Time start = MonotonicNow();
      const absl::Status verdict =
          watch->Announce(absl::InternalError(absl::StrCat("rank ", rank, " failed")));
      if (MonotonicNow() - start >= absl::Seconds(1)) late = true;
      return verdict;
    });
    in_time = !late;
    for (const absl::Status& verdict : verdicts) {
      EXPECT_TRUE(late || verdict == verdicts[0]) << verdict << " and " << verdicts[0];
    }
  }
  EXPECT_TRUE(in_time);
}

// Says who it is, and joins what the others say.
class Clerk final : public HangObserver {
 public:
  explicit Clerk(int rank, Pace pace = PaceOf(absl::Seconds(20))) : rank_(rank), pace_(pace) {}

  static Pace PaceOf(absl::Duration answer) {
    return {absl::Milliseconds(50), answer, absl::Seconds(100)};
  }

  Pace pace() const override { return pace_; }
  bool Look(absl::Time /*now*/) override { return false; }
  std::string Testify(absl::Time /*now*/, uint32_t /*query*/) override {
    return absl::StrCat("here is ", rank_);
  }
  std::string Conclude(const std::vector<Said>& ranks, absl::Time /*asked*/,
                       absl::Time /*now*/) override {
    std::string text;
    for (const Said& said : ranks) {
      absl::StrAppend(&text, said.name, ": ",
                      said.answer.how == Inquiry::Answer::How::kGiven ? said.answer.text : "-",
                      "; ");
    }
    return text;
  }
  void Hear(const std::string& report, absl::Time /*now*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    heard_ = report;
    changed_.notify_all();
  }
  void Failed(const absl::Status& verdict) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    verdict_ = verdict;
  }

  std::string Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !heard_.empty(); });
    return std::exchange(heard_, "");
  }
  absl::Status verdict() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return verdict_;
  }

 private:
  const int rank_;
  const Pace pace_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string heard_;
  absl::Status verdict_;
};

// One rank asks, and one says nothing, be it the root; -1: all answer.
void ExpectReports(int world, int asking, int silent) {
  World started(world);
  std::barrier<> attended(world);
  std::barrier<> heard(world);
  // The query waits this long for silent ranks. The others answer sooner, also on a busy machine.
  const absl::Duration answer = absl::Seconds(silent == -1 ? 20 : 3);
  const std::vector<std::string> reports = RunRanks(world, [&](int rank) {
    Clerk clerk(rank, Clerk::PaceOf(answer));
    const std::unique_ptr<Watch> watch = started.Start(rank);
    if (rank != silent) watch->Attend(&clerk);
    attended.arrive_and_wait();
    if (rank == asking) watch->Ask();
    // Where the root is silent, the others of its children hear nothing.
    std::string report = rank == asking || (silent != 0 && rank != silent) ? clerk.Await() : "";
    heard.arrive_and_wait();
    watch->Attend(nullptr);
    return report;
  });
  std::string expected;
  for (int rank = 0; rank < world; ++rank) {
    const bool asked = silent != 0 || rank == asking;
    // Only the root knows the names of ranks that are no neighbours.
    const bool named = asked || rank == 0;
    absl::StrAppend(&expected, "rank ", rank, named ? absl::StrCat(" (pod p", rank, ")") : "", ": ",
                    rank == silent || !asked ? "-" : absl::StrCat("here is ", rank), "; ");
  }
  // Where all above are silent a rank asks those below itself, and there are none below.
  const bool alone = silent == 0 && world <= kArity + 1;
  if (silent != 0 || alone) {
    EXPECT_EQ(reports[static_cast<size_t>(asking)], expected) << asking << " " << silent;
  }
  for (int rank = 0; silent != 0 && rank < world; ++rank) {
    EXPECT_EQ(reports[static_cast<size_t>(rank)], rank == silent ? "" : expected)
        << asking << " " << silent;
  }
}

TEST_P(WatchTest, WhoAsksHearsWhatEverybodySaysAndSoDoesEverybody) {
  const int world = GetParam();
  // At the same time: those that wait for a silent rank sleep.
  std::vector<std::thread> worlds;
  for (const int asking : {0, world - 1}) {
    for (const int silent : {-1, 0, world / 2}) {
      if (silent != asking) worlds.emplace_back(ExpectReports, world, asking, silent);
    }
  }
  for (std::thread& one : worlds) one.join();
}

// Who is told of a failure dismisses the observer at once; it has been told all the same.
TEST_P(WatchTest, TheWitnessLearnsTheVerdictBeforeItIsDismissed) {
  const int world = GetParam();
  World started(world);
  std::barrier<> attended(world);
  const absl::Status failure = absl::InternalError("rank 0: rail 1 is down");
  RunRanks(world, [&](int rank) {
    Clerk clerk(rank);
    const std::unique_ptr<Watch> watch = started.Start(rank);
    watch->Attend(&clerk);
    attended.arrive_and_wait();
    if (rank == 0) {
      EXPECT_EQ(watch->Announce(failure), failure);
    }
    EXPECT_TRUE(net::WaitReadable(NewsOf(*watch)->fd(), In(20)).ok());
    watch->Attend(nullptr);
    EXPECT_EQ(clerk.verdict(), failure);
    return true;
  });
}

// Those that are left must know it: they may meet again.
TEST_P(WatchTest, WhoGoesAfterAFailureIsKnownToo) {
  const int world = GetParam();
  if (world < 3) return;
  World started(world);
  std::barrier<> failed(world);
  const int victim = world - 1;
  RunRanks(world, [&](int rank) {
    std::unique_ptr<Watch> watch = started.Start(rank);
    if (rank == 0) watch->Announce(absl::InternalError("rank 0 failed")).IgnoreError();
    EXPECT_TRUE(net::WaitReadable(NewsOf(*watch)->fd(), In(20)).ok());
    EXPECT_THAT(watch->gone(), ::testing::IsEmpty());
    failed.arrive_and_wait();
    if (rank == victim) {
      watch.reset();
    } else {
      const absl::Time deadline = In(20);
      while (watch->gone().empty() && MonotonicNow() < deadline) {
        absl::SleepFor(absl::Milliseconds(1));
      }
      // Others may have left since then, because of it.
      std::vector<Gone> gone = watch->gone();
      gone.resize(1);
      EXPECT_EQ(gone.front(),
                (Gone{victim, absl::StrCat("rank ", victim, " (pod p", victim, ")")}));
    }
    failed.arrive_and_wait();
    return true;
  });
}

// It does not wait, so the others have nobody above them who could tell them that all have left.
TEST_P(WatchTest, WhereRankZeroLeavesFirstTheOthersLeaveInPeaceToo) {
  const int world = GetParam();
  World started(world);
  std::barrier<> left(world);
  RunRanks(world, [&](int rank) {
    std::unique_ptr<Watch> watch = started.Start(rank);
    if (rank == 0) {
      watch->Goodbye(absl::InfinitePast());
      watch.reset();
    }
    left.arrive_and_wait();
    if (rank == 0) return true;
    EXPECT_TRUE(watch->Goodbye(In(20)));
    EXPECT_FALSE(watch->failed());
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, WatchTest, ::testing::Values(2, 3, 5, 24));

TEST(WatchAloneTest, AWorldOfOneLeavesAtOnce) {
  const std::unique_ptr<Watch> watch = World(1).Start(0);
  const absl::Time deadline = In(20);
  watch->Goodbye(deadline);
  EXPECT_LT(MonotonicNow(), deadline);
}

TEST(WatchAloneTest, GoodbyeEndsAtItsDeadlineWhereOthersStay) {
  World started(2);
  std::atomic<bool> left = false;
  RunRanks(2, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    if (rank == 1) {
      watch->Goodbye(In(0.2));
      left = true;
    } else {
      while (!left) absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_FALSE(watch->failed());  // leaving is not dying
    return true;
  });
}

// The two ranks' times without inquiries end together, and the call of one may arrive while that of
// the other still lasts.
TEST(WatchAloneTest, WhoAsksAgainAsSoonAsItMayHearsAllAgain) {
  World started(2);
  std::barrier<> heard(2);
  RunRanks(2, [&](int rank) {
    Clerk clerk(
        rank,
        {.look = absl::Seconds(10), .answer = absl::Seconds(10), .fresh = absl::Milliseconds(200)});
    const std::unique_ptr<Watch> watch = started.Start(rank);
    watch->Attend(&clerk);
    heard.arrive_and_wait();
    for (int i = 0; rank == 1 && i < 5; ++i) {
      watch->Ask();
      EXPECT_EQ(clerk.Await(), "rank 0 (pod p0): here is 0; rank 1 (pod p1): here is 1; ") << i;
    }
    heard.arrive_and_wait();
    watch->Attend(nullptr);
    return true;
  });
}

// A network between rank 0 and the others that forgets its connections.
class Forgetful {
 public:
  explicit Forgetful(int port)
      : relay_({*net::IpAddress::Parse("127.0.0.1"), static_cast<uint16_t>(port)}),
        thread_([this] { Run(); }) {}
  ~Forgetful() {
    stop_ = true;
    thread_.join();
  }
  uint16_t port() const { return relay_.port(); }
  // Returns how many connections there were.
  size_t Forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return relay_.Reset();
  }

 private:
  void Run() {
    while (!stop_) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        relay_.Pump();
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  std::mutex mutex_;
  railhead::testing::Relay relay_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void ExpectNothingEnds(int world, World& started, Forgetful& network) {
  std::barrier<> all(world);
  std::atomic<size_t> forgotten = 0;
  RunRanks(world, [&](int rank) {
    Clerk clerk(rank, {.look = absl::Milliseconds(50),
                       .answer = absl::Seconds(20),
                       .fresh = absl::ZeroDuration()});
    std::unique_ptr<Watch> watch = started.Start(rank);
    watch->Attend(&clerk);
    for (int round = 0; round < 3; ++round) {
      all.arrive_and_wait();
      if (rank == round % world) watch->Ask();
      // All know each other's processes after the first one.
      if (rank == 0 && round > 0) forgotten += network.Forget();
      const std::string report = clerk.Await();
      for (int other = 0; other < world; ++other) {
        EXPECT_THAT(report, HasSubstr(absl::StrCat("here is ", other)));
      }
      EXPECT_FALSE(watch->failed()) << watch->verdict();
      all.arrive_and_wait();
    }
    watch->Attend(nullptr);
    if (rank == world - 1) {
      watch.reset();
    } else {
      EXPECT_TRUE(net::WaitReadable(NewsOf(*watch)->fd(), In(20)).ok());
      EXPECT_THAT(std::string(watch->verdict().message()),
                  HasSubstr(absl::StrCat("rank ", world - 1, " (pod p", world - 1, ") is gone")));
    }
    all.arrive_and_wait();
    return true;
  });
  EXPECT_GE(forgotten, static_cast<size_t>(world) - 1);
}

class ForgetfulNetworkTest : public ::testing::TestWithParam<int> {};

// A reset is not a death: the ranks connect again, and nothing that was said is lost. A death is
// still noticed.
TEST_P(ForgetfulNetworkTest, ItsResetsEndNothing) {
  const int world = GetParam();
  for (int time = 0; time < 20; ++time) {
    World started(world);
    Forgetful network(started.port());
    started.set_host_port(network.port());
    ExpectNothingEnds(world, started, network);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ForgetfulNetworkTest, ::testing::Values(2, 3, 7));

}  // namespace
}  // namespace railhead::bootstrap
