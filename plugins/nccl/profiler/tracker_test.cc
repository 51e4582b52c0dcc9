// SPDX-License-Identifier: Apache-2.0
//
// Streams of events from a generator, which knows what must be counted; and streams that no NCCL
// would send.
#include "plugins/nccl/profiler/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/metrics/page.h"

namespace railhead::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kMicrosecond = 1000;
// NOLINTBEGIN(bugprone-throwing-static-initialization): short names are not allocated
const CallName kRingAllReduce = NameOf("AllReduce", "RING");
const CallName kTreeAllReduce = NameOf("AllReduce", "TREE");
const CallName kRingAllGather = NameOf("AllGather", "RING");
const CallName kSending = NameOf("Send", "");
const CallName kReceiving = NameOf("Recv", "");
// NOLINTEND(bugprone-throwing-static-initialization)

metrics::Snapshot ReportOf(Tracker& tracker, Nanoseconds now) {
  metrics::Snapshot snapshot;
  tracker.Report(now, snapshot);
  return snapshot;
}

uint64_t Operations(const metrics::Snapshot& snapshot) {
  uint64_t operations = 0;
  for (const metrics::KindCounts& kind : snapshot.collectives) {
    for (const metrics::CollectiveCounts& counts : kind.classes) operations += counts.operations;
  }
  return operations;
}

uint64_t Untimed(const metrics::Snapshot& snapshot) {
  uint64_t operations = 0;
  for (const metrics::UntimedOperations& untimed : snapshot.profiler.untimed) {
    operations += untimed.operations;
  }
  return operations;
}

double Waited(const metrics::Snapshot& snapshot, const std::string& direction,
              const std::string& cause) {
  double seconds = 0;
  for (const metrics::WaitTime& wait : snapshot.profiler.waits) {
    if (wait.direction == direction && wait.cause == cause) seconds += wait.seconds;
  }
  return seconds;
}

std::vector<int> PeersOf(const std::vector<Silence>& silences) {
  std::vector<int> peers;
  peers.reserve(silences.size());
  for (const Silence& silence : silences) peers.push_back(silence.peer);
  return peers;
}

// The stages of a transfer's steps.
constexpr std::array<Stage, 3> kSendStages = {Stage::kSendGpu, Stage::kSendPeer,
                                              Stage::kSendNetwork};
constexpr std::array<Stage, 3> kReceiveStages = {Stage::kReceiveData, Stage::kReceiveFlush,
                                                 Stage::kReceiveGpu};
Stage StageOf(Direction direction, size_t number) {
  return direction == Direction::kSend ? kSendStages[number] : kReceiveStages[number];
}

// Plays communicators with random calls, and computes what must be counted.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  // Adds a communicator with calls, from `begin` on.
  void AddCommunicator(const std::string& name, Nanoseconds begin) {
    const int ranks = Draw(2, 9);
    const size_t comm = handles_.size();
    handles_.push_back(0);
    At(begin, [=, this](Tracker& tracker, Nanoseconds) {
      handles_[comm] = tracker.Open({name, absl::StrCat(name, " 1f"), ranks});
    });
    Nanoseconds now = begin + 1;
    for (int call = Draw(1, 30); call > 0; --call) {
      AddCall(name, comm, ranks, now);
      now += Draw(0, 2000) * kMicrosecond;
    }
  }

  void Play(Tracker& tracker) {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [now, event] : events_) event(tracker, now);
  }

  Nanoseconds end() const { return events_.back().first; }

  struct Expected {
    uint64_t operations = 0;
    uint64_t bytes = 0;
    double seconds = 0;
    std::array<uint64_t, metrics::kDurationBounds.size() + 1> buckets{};
  };
  using Key = std::tuple<std::string, std::string, std::string, size_t>;  // with the size class
  std::map<Key, Expected> expected;
  std::map<std::string, uint64_t> untimed;
  // By collective, size class, direction and cause.
  std::map<std::tuple<std::string, size_t, std::string, std::string>, Nanoseconds> waits;
  uint64_t calls = 0;
  uint64_t transfers = 0;
  uint64_t steps = 0;

 private:
  using Event = std::function<void(Tracker& tracker, Nanoseconds now)>;

  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void At(Nanoseconds time, Event event) { events_.emplace_back(time, std::move(event)); }
  size_t NewHandle() {
    handles_.push_back(0);
    return handles_.size() - 1;
  }

  struct Ends {
    Nanoseconds first_begin = 0;  // of its first step
    Nanoseconds first_move = 0;   // when that went to the second stage
    Nanoseconds end = 0;
  };

  void AddCall(const std::string& comm_name, size_t comm, int ranks, Nanoseconds now) {
    static constexpr std::array<const char*, 7> kFunctions = {
        "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv"};
    static constexpr std::array<const char*, 3> kWords = {"RING", "TREE", "NVLS"};
    const CallName name = NameOf(kFunctions[static_cast<size_t>(Draw(0, 6))],
                                 kWords[static_cast<size_t>(Draw(0, 2))]);
    const uint64_t part = static_cast<uint64_t>(Draw(1, 4000)) << Draw(0, 12);
    const uint64_t bytes = name.is_part ? part * static_cast<uint64_t>(ranks) : part;
    const size_t size_class = metrics::SizeClass(bytes);
    const size_t call = NewHandle();
    ++calls;
    At(now, [=, this](Tracker& tracker, Nanoseconds time) {
      handles_[call] = tracker.StartCall(handles_[comm], name, part, time);
    });
    // It is queued; its transfers start before that, and after.
    At(now + Draw(1, 50), [=, this](Tracker& tracker, Nanoseconds time) {
      EXPECT_TRUE(tracker.Stop(handles_[call], time));
    });
    std::vector<Ends> sends;
    std::vector<Ends> receives;
    const bool only_sends = name.call == kSending.call;
    const bool only_receives = name.call == kReceiving.call;
    for (int transfer = Draw(0, 4); transfer > 0; --transfer) {
      const bool is_send = only_sends || (!only_receives && Draw(0, 1) == 0);
      (is_send ? sends : receives)
          .push_back(AddTransfer(call, name, size_class, Draw(0, ranks - 1),
                                 is_send ? Direction::kSend : Direction::kReceive,
                                 now + Draw(0, 90)));
    }
    if (sends.empty() && receives.empty()) {
      ++untimed[kCallNames[name.call]];
      return;
    }
    Nanoseconds ready = INT64_MAX;
    Nanoseconds came = INT64_MAX;
    Nanoseconds waited = INT64_MAX;
    Nanoseconds end = 0;
    for (const Ends& send : sends) {
      ready = std::min(ready, send.first_move);
      end = std::max(end, send.end);
    }
    for (const Ends& receive : receives) {
      waited = std::min(waited, receive.first_begin);
      came = std::min(came, receive.first_move);
      end = std::max(end, receive.end);
    }
    const bool from_ready =
        !sends.empty() && (name.sends_first || receives.empty() || ready < came);
    const Nanoseconds duration = std::max<Nanoseconds>(end - (from_ready ? ready : waited), 0);
    Expected& counts =
        expected[{comm_name, kCallNames[name.call], kAlgorithmNames[name.algorithm], size_class}];
    ++counts.operations;
    counts.bytes += bytes;
    counts.seconds += static_cast<double>(duration) * 1e-9;
    ++counts.buckets[metrics::DurationBucket(duration)];
  }

  Ends AddTransfer(size_t call, CallName name, size_t size_class, int peer, Direction direction,
                   Nanoseconds begin) {
    const size_t transfer = NewHandle();
    ++transfers;
    At(begin, [=, this](Tracker& tracker, Nanoseconds now) {
      handles_[transfer] = tracker.StartTransfer(handles_[call], peer, direction, now);
    });
    // Steps are in a pipeline, in order: times of their stages, and of their ends.
    const int depth = Draw(1, 8);
    std::vector<std::array<Nanoseconds, 4>> times;
    for (int number = Draw(1, 20); number > 0; --number) {
      std::array<Nanoseconds, 4> step{};
      for (size_t stage = 0; stage < 4; ++stage) {
        Nanoseconds earliest = stage == 0 ? begin : step[stage - 1];
        if (!times.empty()) earliest = std::max(earliest, times.back()[stage]);
        if (stage == 0 && times.size() >= static_cast<size_t>(depth)) {
          earliest = std::max(earliest, times[times.size() - static_cast<size_t>(depth)][3]);
        }
        step[stage] = earliest + (Draw(0, 3) == 0 ? 0 : Draw(1, 300) * kMicrosecond);
      }
      times.push_back(step);
    }
    for (size_t number = 0; number < times.size(); ++number) {
      const size_t step = NewHandle();
      ++steps;
      At(times[number][0], [=, this](Tracker& tracker, Nanoseconds now) {
        handles_[step] = tracker.StartStep(handles_[transfer], static_cast<int>(number), now);
        tracker.SetStage(handles_[step], StageOf(direction, 0), now);
      });
      for (size_t stage = 1; stage < 3; ++stage) {
        At(times[number][stage], [=, this](Tracker& tracker, Nanoseconds now) {
          tracker.SetStage(handles_[step], StageOf(direction, stage), now);
        });
      }
      At(times[number][3], [=, this](Tracker& tracker, Nanoseconds now) {
        EXPECT_TRUE(tracker.Stop(handles_[step], now));
      });
    }
    const Nanoseconds end = times.back()[3];
    At(end, [=, this](Tracker& tracker, Nanoseconds now) {
      EXPECT_TRUE(tracker.Stop(handles_[transfer], now));
    });
    AddWaits(name, size_class, direction, times);
    return {times[0][0], times[0][1], end};
  }

  // At each time, what the oldest step waits for.
  void AddWaits(CallName name, size_t size_class, Direction direction,
                const std::vector<std::array<Nanoseconds, 4>>& times) {
    static constexpr std::array<const char*, 3> kSendCauses = {"gpu", "peer", "network"};
    static constexpr std::array<const char*, 3> kReceiveCauses = {"peer", "flush", "gpu"};
    std::vector<Nanoseconds> changes;
    for (const auto& step : times) changes.insert(changes.end(), step.begin(), step.end());
    std::sort(changes.begin(), changes.end());
    for (size_t i = 0; i + 1 < changes.size(); ++i) {
      const auto oldest = std::find_if(times.begin(), times.end(), [&](const auto& step) {
        return step[0] <= changes[i] && changes[i] < step[3];
      });
      if (oldest == times.end()) continue;
      size_t stage = 2;
      while ((*oldest)[stage] > changes[i]) --stage;
      const bool is_send = direction == Direction::kSend;
      waits[{kCallNames[name.call], size_class, is_send ? "send" : "receive",
             is_send ? kSendCauses[stage] : kReceiveCauses[stage]}] += changes[i + 1] - changes[i];
    }
  }

  std::mt19937 random_;
  std::vector<EventHandle> handles_;
  std::vector<std::pair<Nanoseconds, Event>> events_;
};

class StreamTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(StreamTest, IsCountedAsTheGeneratorKnowsIt) {
  Generator generator(GetParam());
  const std::array<std::string, 4> names = {"", "tensor", "data", "pipeline"};
  for (size_t comm = 0; comm <= GetParam() % names.size(); ++comm) {
    generator.AddCommunicator(names[comm], static_cast<Nanoseconds>(comm) * kSecond / 1000);
  }
  Tracker tracker;
  generator.Play(tracker);
  const metrics::Snapshot snapshot = ReportOf(tracker, generator.end() + 10 * kSecond);

  std::map<Generator::Key, metrics::CollectiveCounts> found;
  for (const metrics::KindCounts& kind : snapshot.collectives) {
    for (size_t i = 0; i < kind.classes.size(); ++i) {
      if (kind.classes[i].operations == 0) continue;
      found[{kind.comm, kind.collective, kind.algorithm, i}] = kind.classes[i];
    }
  }
  ASSERT_EQ(found.size(), generator.expected.size());
  for (const auto& [key, expected] : generator.expected) {
    SCOPED_TRACE(absl::StrCat(std::get<0>(key), " ", std::get<1>(key), " ", std::get<2>(key)));
    const metrics::CollectiveCounts& counts = found[key];
    EXPECT_EQ(counts.operations, expected.operations);
    EXPECT_EQ(counts.bytes, expected.bytes);
    EXPECT_NEAR(counts.seconds, expected.seconds, 1e-9);
    EXPECT_EQ(counts.buckets, expected.buckets);
  }
  std::map<std::string, uint64_t> untimed;
  for (const metrics::UntimedOperations& one : snapshot.profiler.untimed) {
    untimed[one.collective] = one.operations;
  }
  EXPECT_EQ(untimed, generator.untimed);
  std::erase_if(generator.waits, [](const auto& wait) { return wait.second == 0; });
  ASSERT_EQ(snapshot.profiler.waits.size(), generator.waits.size());
  for (const metrics::WaitTime& wait : snapshot.profiler.waits) {
    SCOPED_TRACE(absl::StrCat(wait.collective, " ", wait.direction, " ", wait.cause));
    EXPECT_NEAR(
        wait.seconds,
        static_cast<double>(
            generator.waits[{wait.collective, wait.size_class, wait.direction, wait.cause}]) *
            1e-9,
        1e-9);
  }
  ASSERT_EQ(snapshot.profiler.events.size(), 4U);
  const std::array<uint64_t, 4> events = {generator.calls, generator.transfers, generator.steps, 0};
  for (size_t kind = 0; kind < events.size(); ++kind) {
    EXPECT_EQ(snapshot.profiler.events[kind].started, events[kind]);
    EXPECT_EQ(snapshot.profiler.events[kind].stopped, events[kind]);
  }
  EXPECT_EQ(snapshot.profiler.dropped, 0U);
  EXPECT_EQ(snapshot.profiler.silent_peers, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamTest, ::testing::Range<uint32_t>(1, 25));

// Any order of calls, with handles of all kinds, stale ones and numbers that are none.
TEST(TrackerTest, ADisorderlyStreamDoesNoHarm) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    Tracker tracker({.communicators = 4, .calls = 8, .transfers = 8, .steps = 8, .others = 8});
    std::vector<EventHandle> handles = {0, 1, ~EventHandle{0}};
    std::vector<EventHandle> communicators;
    Nanoseconds now = 0;
    const auto any = [&] {
      return random() % 8 == 0 ? random() : handles[random() % handles.size()];
    };
    for (int i = 0; i < 5000; ++i) {
      // The clock may stand still, and once in a while days pass.
      now += random() % 500 == 0 ? Nanoseconds{4} * 86'400 * kSecond
                                 : static_cast<Nanoseconds>(random() % 3) * kMicrosecond;
      const auto peer = static_cast<int>(random());
      switch (random() % 13) {
        case 0:
          handles.push_back(tracker.Open({"a", "a", static_cast<int>(random() % 3)}));
          communicators.push_back(handles.back());
          break;
        case 1:
          if (random() % 8 == 0) tracker.Close(any(), now);
          break;
        case 2:
          handles.push_back(tracker.StartCall(any(), random() % 2 == 0 ? kRingAllGather : kSending,
                                              random(), now));
          break;
        case 3:
          handles.push_back(tracker.StartTransfer(
              any(), peer, random() % 2 == 0 ? Direction::kSend : Direction::kReceive, now));
          if (random() % 4 == 0) {
            handles.push_back(tracker.StartForeignTransfer(peer, Direction::kSend, now));
          }
          break;
        case 4:
          handles.push_back(tracker.StartStep(any(), peer % 3, now));
          break;
        case 5:
          handles.push_back(tracker.StartKernel(any(), random(), now));
          break;
        case 6:
          handles.push_back(tracker.StartOther(now));
          break;
        case 7:
          tracker.SetKernelEnd(any(), random());
          break;
        case 8:
          tracker.Attach(any(), &tracker);
          break;
        case 9:
          tracker.CheckSilence(now);
          tracker.Sweep(now);
          break;
        case 10:
          tracker.Stop(any(), now);
          break;
        default:
          tracker.SetStage(any(), static_cast<Stage>(random() % kStages), now);
          break;
      }
      if (handles.size() > 200) handles.erase(handles.begin() + 3, handles.begin() + 100);
    }
    const metrics::Snapshot snapshot = ReportOf(tracker, now);
    for (const metrics::ProfilerEvents& events : snapshot.profiler.events) {
      EXPECT_LE(events.stopped, events.started);
    }
    for (const EventHandle communicator : communicators) tracker.Close(communicator, now);
    // It works as before, once what belongs to no communicator is old.
    now += 700 * kSecond;
    const uint64_t before = Operations(ReportOf(tracker, now));
    const EventHandle comm = tracker.Open({"a", "a", 2});
    ASSERT_NE(comm, 0U);
    const EventHandle call = tracker.StartCall(comm, kSending, 8, now);
    const EventHandle transfer = tracker.StartTransfer(call, 1, Direction::kSend, now);
    const EventHandle step = tracker.StartStep(transfer, 0, now);
    tracker.SetStage(step, Stage::kSendGpu, now);
    tracker.SetStage(step, Stage::kSendNetwork, now);
    for (const EventHandle event : {call, step, transfer}) EXPECT_TRUE(tracker.Stop(event, now));
    EXPECT_EQ(Operations(ReportOf(tracker, now + kSecond)), before + 1);
  }
}

// One communicator with a call, whose steps a test moves by hand.
class OneCallTest : public ::testing::Test {
 protected:
  void Begin(CallName name, int ranks = 8) {
    comm_ = tracker_.Open({"", "1f", ranks});
    call_ = tracker_.StartCall(comm_, name, 4096, now_);
  }
  EventHandle Transfer(int peer, Direction direction) {
    return tracker_.StartTransfer(call_, peer, direction, now_);
  }
  EventHandle StepOf(EventHandle transfer, int number, Stage stage) {
    const EventHandle step = tracker_.StartStep(transfer, number, now_);
    tracker_.SetStage(step, stage, now_);
    return step;
  }
  std::vector<int> NewlySilent() { return PeersOf(tracker_.CheckSilence(now_).silent); }

  Tracker tracker_;
  Nanoseconds now_ = 1000 * kSecond;
  EventHandle comm_ = 0;
  EventHandle call_ = 0;
};

TEST_F(OneCallTest, APeerThatSendsNothingIsSilentUntilItDoes) {
  Begin(kTreeAllReduce);
  const EventHandle step = StepOf(Transfer(3, Direction::kReceive), 0, Stage::kReceiveData);
  now_ += 4 * kSecond;
  EXPECT_THAT(NewlySilent(), IsEmpty());
  now_ += 1 * kSecond;
  const Tracker::Changes changes = tracker_.CheckSilence(now_);
  ASSERT_EQ(changes.silent.size(), 1U);
  EXPECT_EQ(changes.silent[0].peer, 3);
  EXPECT_EQ(changes.silent[0].communicator, "1f");
  EXPECT_EQ(changes.silent[0].duration, 5 * kSecond);
  now_ += 2 * kSecond;
  EXPECT_THAT(NewlySilent(), IsEmpty()) << "it was, already";
  metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(snapshot.profiler.silent_peers, 1U);
  ASSERT_EQ(snapshot.profiler.silent.size(), 1U);
  EXPECT_EQ(snapshot.profiler.silent[0].peer, 3);
  EXPECT_EQ(snapshot.profiler.silent[0].seconds, 7);
  // While it lasts, the wait grows.
  EXPECT_EQ(Waited(snapshot, "receive", "peer"), 7);
  tracker_.SetStage(step, Stage::kReceiveFlush, now_);
  EXPECT_THAT(PeersOf(tracker_.CheckSilence(now_).resumed), ElementsAre(3));
  snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(snapshot.profiler.silent_peers, 0U);
  EXPECT_THAT(snapshot.profiler.silent, IsEmpty());
}

TEST_F(OneCallTest, APeerThatSendsSlowlyIsNotSilent) {
  Begin(kTreeAllReduce);
  const EventHandle transfer = Transfer(3, Direction::kReceive);
  const EventHandle other = StepOf(Transfer(3, Direction::kReceive), 0, Stage::kReceiveData);
  std::vector<EventHandle> steps;
  for (int i = 0; i < 8; ++i) steps.push_back(StepOf(transfer, i, Stage::kReceiveData));
  for (const EventHandle step : steps) {
    now_ += 3 * kSecond;
    EXPECT_THAT(NewlySilent(), IsEmpty());
    tracker_.SetStage(step, Stage::kReceiveFlush, now_);
  }
  // On another channel, nothing has come in all that time.
  now_ += 5 * kSecond;
  EXPECT_THAT(NewlySilent(), ElementsAre(3));
  tracker_.Stop(other, now_);
  EXPECT_THAT(PeersOf(tracker_.CheckSilence(now_).resumed), ElementsAre(3));
}

TEST_F(OneCallTest, WhileThisRanksGpuIsLateNoPeerIsSilent) {
  Begin(kRingAllReduce);
  StepOf(Transfer(7, Direction::kReceive), 0, Stage::kReceiveData);
  const EventHandle own = StepOf(Transfer(1, Direction::kSend), 0, Stage::kSendGpu);
  now_ += 60 * kSecond;
  EXPECT_THAT(NewlySilent(), IsEmpty());
  tracker_.SetStage(own, Stage::kSendPeer, now_);
  now_ += 4 * kSecond;
  EXPECT_THAT(NewlySilent(), IsEmpty());
  now_ += 1 * kSecond;
  EXPECT_THAT(NewlySilent(), ElementsAre(7));
}

TEST_F(OneCallTest, ASilentPeerEndsWithItsCommunicator) {
  Begin(kReceiving, 100);
  for (int peer = 0; peer < 20; ++peer) {
    StepOf(Transfer(peer, Direction::kReceive), 0, Stage::kReceiveData);
  }
  now_ += 5 * kSecond;
  EXPECT_EQ(NewlySilent().size(), 20U);
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(snapshot.profiler.silent_peers, 20U);
  EXPECT_EQ(snapshot.profiler.silent.size(), 8U);
  EXPECT_TRUE(tracker_.Close(comm_, now_));
  EXPECT_FALSE(tracker_.Close(comm_, now_));
  EXPECT_EQ(ReportOf(tracker_, now_).profiler.silent_peers, 0U);
  EXPECT_THAT(tracker_.CheckSilence(now_).resumed, IsEmpty());
}

TEST_F(OneCallTest, KernelsTellTheDuration) {
  Begin(kRingAllReduce);
  const EventHandle early = tracker_.StartKernel(call_, 5'000'000, now_);
  const EventHandle late = tracker_.StartKernel(call_, 6'000'000, now_);
  now_ += 9 * kSecond;
  tracker_.SetKernelEnd(late, 7'000'000);
  tracker_.SetKernelEnd(early, 6'500'000);
  for (const EventHandle event : {late, early, call_}) EXPECT_TRUE(tracker_.Stop(event, now_));
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_ + kSecond);
  ASSERT_EQ(snapshot.collectives.size(), 1U);
  EXPECT_NEAR(snapshot.collectives[0].classes[0].seconds, 0.002, 1e-12);
}

TEST_F(OneCallTest, KernelsWithoutTimesAreTimedByTheHost) {
  Begin(kRingAllReduce);
  const EventHandle kernel = tracker_.StartKernel(call_, std::nullopt, now_);
  now_ += 3 * kSecond;
  for (const EventHandle event : {kernel, call_}) EXPECT_TRUE(tracker_.Stop(event, now_));
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_ + kSecond);
  ASSERT_EQ(snapshot.collectives.size(), 1U);
  EXPECT_NEAR(snapshot.collectives[0].classes[0].seconds, 3, 1e-9);
}

TEST_F(OneCallTest, ARepeatedStartOfAStepIsOneStep) {
  Begin(kReceiving);
  const EventHandle transfer = Transfer(1, Direction::kReceive);
  const EventHandle step = tracker_.StartStep(transfer, 0, now_);
  EXPECT_EQ(tracker_.StartStep(transfer, 0, now_), step);
  tracker_.SetStage(step, Stage::kReceiveData, now_);
  EXPECT_NE(tracker_.StartStep(transfer, 1, now_), step);
  EXPECT_EQ(ReportOf(tracker_, now_).profiler.events[2].started, 2U);
}

TEST_F(OneCallTest, StepsOnlyGoForward) {
  Begin(kSending);
  const EventHandle step = StepOf(Transfer(1, Direction::kSend), 0, Stage::kSendNetwork);
  now_ += kSecond;
  tracker_.SetStage(step, Stage::kSendGpu, now_);
  tracker_.SetStage(step, Stage::kReceiveGpu, now_);
  now_ += kSecond;
  EXPECT_TRUE(tracker_.Stop(step, now_));
  EXPECT_FALSE(tracker_.Stop(step, now_));
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(Waited(snapshot, "send", "network"), 2);
  EXPECT_EQ(snapshot.profiler.waits.size(), 1U);
}

TEST_F(OneCallTest, ACallIsCountedOnceAllItsTransfersHaveEnded) {
  Begin(kSending);
  EXPECT_TRUE(tracker_.Stop(call_, now_));
  EXPECT_FALSE(tracker_.Stop(call_, now_));
  for (int channel = 0; channel < 2; ++channel) {
    now_ += kSecond / 20;
    const EventHandle transfer = Transfer(1, Direction::kSend);
    const EventHandle step = StepOf(transfer, 0, Stage::kSendPeer);
    now_ += kSecond;
    EXPECT_EQ(Operations(ReportOf(tracker_, now_)), 0U);
    for (const EventHandle event : {step, transfer}) EXPECT_TRUE(tracker_.Stop(event, now_));
    EXPECT_EQ(Operations(ReportOf(tracker_, now_)), 0U) << "another transfer may start";
  }
  now_ += kSecond / 5;
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(Operations(snapshot), 1U);
  EXPECT_NEAR(snapshot.collectives[0].classes[0].seconds, 2.05, 1e-9);
}

TEST_F(OneCallTest, ACallThatDoesNotUseTheNetworkIsUntimed) {
  Begin(kRingAllReduce);
  EXPECT_TRUE(tracker_.Stop(call_, now_));
  const EventHandle open = tracker_.StartCall(comm_, kRingAllReduce, 8, now_);
  const EventHandle ended = tracker_.StartCall(comm_, kRingAllReduce, 8, now_);
  now_ += 4 * kSecond;
  EXPECT_EQ(Untimed(ReportOf(tracker_, now_)), 0U);
  now_ += 2 * kSecond;
  metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(Untimed(snapshot), 1U);
  EXPECT_EQ(Operations(snapshot), 0U);
  // At the end, those that have stopped are counted.
  EXPECT_TRUE(tracker_.Stop(ended, now_));
  tracker_.Close(comm_, now_);
  snapshot = ReportOf(tracker_, now_);
  EXPECT_EQ(Untimed(snapshot), 2U);
  EXPECT_FALSE(tracker_.Stop(open, now_));
}

TEST_F(OneCallTest, TransfersOfAnotherProcessHaveNoCall) {
  const EventHandle transfer = tracker_.StartForeignTransfer(5, Direction::kSend, now_);
  EXPECT_EQ(tracker_.StartTransfer(0, 5, Direction::kSend, now_), 0U);
  const EventHandle step = StepOf(transfer, 0, Stage::kSendNetwork);
  now_ += 2 * kSecond;
  for (const EventHandle event : {step, transfer}) EXPECT_TRUE(tracker_.Stop(event, now_));
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_);
  ASSERT_EQ(snapshot.profiler.waits.size(), 1U);
  EXPECT_EQ(snapshot.profiler.waits[0].collective, "other_process");
  EXPECT_EQ(snapshot.profiler.waits[0].seconds, 2);
}

TEST_F(OneCallTest, WithoutANumberOfRanksTheHighestRankCounts) {
  Begin(kRingAllGather, /*ranks=*/0);
  const EventHandle transfer = Transfer(2, Direction::kSend);
  const EventHandle step = StepOf(transfer, 0, Stage::kSendNetwork);
  for (const EventHandle event : {step, transfer, call_}) tracker_.Stop(event, now_);
  const metrics::Snapshot snapshot = ReportOf(tracker_, now_ + kSecond);
  ASSERT_EQ(snapshot.collectives.size(), 1U);
  EXPECT_EQ(snapshot.collectives[0].classes[1].bytes, 3U * 4096);
}

TEST_F(OneCallTest, PointersStayWithTheirEvents) {
  int pointed = 0;
  Begin(kSending);
  tracker_.Attach(comm_, &pointed);
  tracker_.Attach(call_, &tracker_);
  EXPECT_EQ(tracker_.Attached(comm_), &pointed);
  tracker_.Stop(call_, now_);
  EXPECT_EQ(tracker_.Attached(call_), &tracker_) << "its children may start later";
  const EventHandle other = tracker_.StartOther(now_);
  EXPECT_EQ(tracker_.Attached(other), nullptr);
  tracker_.Attach(other, &pointed);
  tracker_.Stop(other, now_);
  EXPECT_EQ(tracker_.Attached(other), &pointed);
  tracker_.Sweep(now_ + 20 * kSecond);
  EXPECT_EQ(tracker_.Attached(other), nullptr);
  EXPECT_EQ(tracker_.Attached(call_), nullptr);
  EXPECT_EQ(tracker_.Attached(0), nullptr);
}

TEST(TrackerTest, EventsWithoutRoomAreCountedAndHarmless) {
  Tracker tracker({.communicators = 1, .calls = 2, .transfers = 2, .steps = 2, .others = 2});
  Nanoseconds now = kSecond;
  const EventHandle comm = tracker.Open({"", "", 2});
  EXPECT_EQ(tracker.Open({"", "", 2}), 0U);
  std::vector<EventHandle> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(tracker.StartCall(comm, kSending, 8, now));
  EXPECT_EQ(ReportOf(tracker, now).profiler.dropped, 3U);
  EXPECT_EQ(calls[2], 0U);
  // Once there is room, events are counted again.
  now += 2 * kSecond;
  EXPECT_TRUE(tracker.Stop(calls[0], now));
  EXPECT_NE(tracker.StartCall(comm, kSending, 8, now), 0U);
  EXPECT_EQ(ReportOf(tracker, now).profiler.dropped, 3U);
}

TEST(TrackerTest, TransfersThatNcclNeverStopsLeaveRoomLater) {
  Tracker tracker({.communicators = 1, .calls = 9, .transfers = 3, .steps = 3, .others = 1});
  Nanoseconds now = kSecond;
  const EventHandle comm = tracker.Open({"", "", 2});
  const EventHandle call = tracker.StartCall(comm, kSending, 8, now);
  tracker.Stop(call, now);
  for (int i = 0; i < 3; ++i) EXPECT_NE(tracker.StartTransfer(call, 1, Direction::kSend, now), 0U);
  EXPECT_EQ(tracker.StartTransfer(call, 1, Direction::kSend, now), 0U);
  for (int i = 0; i < 700; ++i) tracker.CheckSilence(now += kSecond);
  const EventHandle next = tracker.StartCall(comm, kSending, 8, now);
  EXPECT_NE(tracker.StartTransfer(next, 1, Direction::kSend, now), 0U);
}

TEST(TrackerTest, AThousandSeriesAreEnoughFor64Communicators) {
  Tracker tracker;
  const Nanoseconds now = kSecond;
  for (int i = 0; i < 64; ++i) {
    const EventHandle comm = tracker.Open({absl::StrCat("group ", i), "", 8});
    for (const CallName name : {kRingAllReduce, i % 2 == 0 ? kRingAllGather : kTreeAllReduce}) {
      const EventHandle call = tracker.StartCall(comm, name, 1 << 20, now);
      for (const Direction direction : {Direction::kSend, Direction::kReceive}) {
        const EventHandle transfer = tracker.StartTransfer(call, 1, direction, now);
        const EventHandle step = tracker.StartStep(transfer, 0, now);
        for (size_t stage = 0; stage < 3; ++stage) {
          tracker.SetStage(step, StageOf(direction, stage), now + static_cast<int>(stage));
        }
        for (const EventHandle event : {step, transfer}) tracker.Stop(event, now + 5);
      }
      tracker.Stop(call, now);
    }
  }
  metrics::Snapshot snapshot = ReportOf(tracker, 2 * now);
  EXPECT_EQ(Operations(snapshot), 128U);
  snapshot.rails.resize(8);
  size_t series = 0;
  for (const auto& family : metrics::ToFamilies({snapshot})) {
    for (const auto& metric : family.metric)
      series += std::max<size_t>(
          metric.histogram.bucket.empty() ? 1 : metric.histogram.bucket.size() + 2, 1);
  }
  EXPECT_GT(series, 100U);
  EXPECT_LT(series, 1000U);
}

TEST(NamesTest, NcclsWordsAreThoseOfMetrics) {
  EXPECT_STREQ(kCallNames[kRingAllReduce.call], "all_reduce");
  EXPECT_STREQ(kAlgorithmNames[kTreeAllReduce.algorithm], "tree");
  EXPECT_STREQ(kCallNames[kReceiving.call], "receive");
  EXPECT_STREQ(kAlgorithmNames[kReceiving.algorithm], "direct");
  EXPECT_STREQ(kCallNames[NameOf("PutSignal", "RING").call], "other");
  EXPECT_STREQ(kAlgorithmNames[NameOf("AllReduce", "STAR").algorithm], "other");
  EXPECT_TRUE(kRingAllGather.is_part);
  EXPECT_FALSE(kRingAllReduce.is_part);
  EXPECT_EQ(ElementBytes("ncclFloat64"), 8U);
  EXPECT_EQ(ElementBytes("ncclInt32"), 4U);
  EXPECT_EQ(ElementBytes("ncclBfloat16"), 2U);
  EXPECT_EQ(ElementBytes("ncclFloat8e4m3"), 1U);
  EXPECT_EQ(ElementBytes("Unknown"), 1U);
  EXPECT_EQ(FunctionWord(4), "AllReduce");
  EXPECT_EQ(FunctionWord(200), "");
  EXPECT_EQ(AlgorithmWord(1), "RING");
  EXPECT_EQ(TypeWord(7), "ncclFloat32");
}

}  // namespace
}  // namespace railhead::nccl
