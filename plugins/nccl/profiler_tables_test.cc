// SPDX-License-Identifier: Apache-2.0
//
// The profiler's tables, called as NCCL calls them, in every version; with another profiler behind
// them; and as no NCCL would call them.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugins/nccl/abi/profiler.h"
#include "plugins/nccl/profiler/chain.h"
#include "plugins/nccl/profiler/profiler.h"
#include "plugins/nccl/testing/other_profiler.h"
#include "runtime/testing/http.h"
#include "runtime/testing/ranks.h"

namespace railhead::nccl {

// NOLINTBEGIN(readability-identifier-naming): names that NCCL looks up
extern "C" const abi::ProfilerV1Table ncclProfiler_v1;
extern "C" const abi::ProfilerV2Table ncclProfiler_v2;
extern "C" const abi::ProfilerV3Table ncclProfiler_v3;
extern "C" const abi::ProfilerV4Table ncclProfiler_v4;
extern "C" const abi::ProfilerV5Table ncclProfiler_v5;
extern "C" const abi::ProfilerV6Table ncclProfiler_v6;
extern "C" const abi::ProfilerV7Table ncclProfiler_v7;
// NOLINTEND(readability-identifier-naming)

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kOwnMask = 0x1e;

std::vector<std::string>& Warnings() {
  static std::vector<std::string> warnings;
  return warnings;
}

// NOLINTNEXTLINE(google-runtime-int): NCCL's type
void Log(int level, unsigned long /*flags*/, const char* /*file*/, int /*line*/, const char* format,
         ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::string text(1000, '\0');
  text.resize(static_cast<size_t>(
      std::min(std::vsnprintf(text.data(), text.size(), format, arguments), 999)));
  va_end(arguments);
  if (level == abi::kWarn) Warnings().push_back(text);
}

template <class Table>
constexpr int kVersionOf = 0;
template <>
constexpr int kVersionOf<abi::ProfilerV1Table> = 1;
template <>
constexpr int kVersionOf<abi::ProfilerV2Table> = 2;
template <>
constexpr int kVersionOf<abi::ProfilerV3Table> = 3;
template <>
constexpr int kVersionOf<abi::ProfilerV4Table> = 4;
template <>
constexpr int kVersionOf<abi::ProfilerV5Table> = 5;
template <>
constexpr int kVersionOf<abi::ProfilerV6Table> = 6;
template <>
constexpr int kVersionOf<abi::ProfilerV7Table> = 7;

template <class Table>
const Table& TheTable() {
  if constexpr (kVersionOf<Table> == 1) return ncclProfiler_v1;
  if constexpr (kVersionOf<Table> == 2) return ncclProfiler_v2;
  if constexpr (kVersionOf<Table> == 3) return ncclProfiler_v3;
  if constexpr (kVersionOf<Table> == 4) return ncclProfiler_v4;
  if constexpr (kVersionOf<Table> == 5) return ncclProfiler_v5;
  if constexpr (kVersionOf<Table> == 6) return ncclProfiler_v6;
  if constexpr (kVersionOf<Table> == 7) return ncclProfiler_v7;
}

// NCCL's part: a communicator of 4 ranks.
template <class Table>
struct Nccl {
  using Event = typename Table::Event;

  explicit Nccl(const char* name = nullptr, int rank = 2, const Table& used = TheTable<Table>())
      : table(used) {
    abi::Result result = abi::kSystemError;
    if constexpr (kVersionOf<Table> < 4) {
      result = table.init(&context, &mask);
    } else if constexpr (kVersionOf<Table> == 4) {
      result = table.init(&context, &mask, name, 0x1f, 2, 4, rank, Log);
    } else {
      result = table.init(&context, 0x1f, &mask, name, 2, 4, rank, Log);
    }
    EXPECT_EQ(result, abi::kSuccess);
  }

  void* Start(Event event) {
    void* handle = &event;  // it must be overwritten
    EXPECT_EQ(table.start(context, &handle, &event), abi::kSuccess);
    return handle;
  }
  void* Group() {
    Event event{};
    event.type = abi::kGroup;
    return Start(event);
  }
  void* Collective(void* group, size_t count = 250'000) {
    Event event{};
    event.type = abi::kCollective;
    event.rank = 3;
    event.parent = group;
    if constexpr (std::is_pointer_v<decltype(event.collective.function)>) {
      event.collective.function = "AllGather";
      event.collective.data_type = "ncclFloat32";
      event.collective.algorithm = "RING";
    } else {
      event.collective.function = 2;
      event.collective.data_type = 7;
      event.collective.algorithm = 1;
    }
    if constexpr (requires { event.collective.parent_group; }) {
      event.parent = nullptr;
      event.collective.parent_group = group;
    }
    event.collective.count = count;
    return Start(event);
  }
  void* Op(void* parent, bool is_send, pid_t pid = ::getpid()) {
    Event event{};
    event.type = abi::kProxyOp;
    event.parent = parent;
    event.rank = 3;
    event.proxy_op = {pid, 0, 1, 1, 1 << 20, is_send ? 1 : 0};
    return Start(event);
  }
  void* Step(void* op, int number) {
    Event event{};
    event.type = abi::kProxyStep;
    event.parent = op;
    event.proxy_step.step = number;
    return Start(event);
  }
  void Record(void* handle, int state) {
    typename Table::State arguments{};
    EXPECT_EQ(table.record(handle, state, &arguments), abi::kSuccess);
  }
  void Stop(void* handle) { EXPECT_EQ(table.stop(handle), abi::kSuccess); }

  // A transfer of the call, with its steps.
  void Transfer(void* call, bool is_send, int steps, pid_t pid = ::getpid()) {
    void* const op = Op(call, is_send, pid);
    for (int number = 0; number < steps; ++number) {
      void* const step = Step(op, number);
      for (const int state : is_send ? std::vector<int>{8, 20, 9} : std::vector<int>{10, 11, 12}) {
        Record(step, state);
      }
      Stop(step);
    }
    Stop(op);
  }
  // An all-gather with a transfer in each direction.
  void AllGather(size_t count = 250'000) {
    void* const group = Group();
    void* const call = Collective(group, count);
    Transfer(call, true, 2);
    Stop(call);
    Stop(group);
    Transfer(call, false, 2);
  }
  void Finalize() { EXPECT_EQ(table.finalize(context), abi::kSuccess); }

  const Table& table;
  void* context = nullptr;
  int mask = 0;
};

metrics::Snapshot Counts() {
  metrics::Snapshot snapshot;
  Profiler::OfProcess().With(
      [&](Tracker& tracker, Nanoseconds now) { tracker.Report(now, snapshot); });
  return snapshot;
}

// Counts of the process grow from test to test.
struct Totals {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  uint64_t started = 0;
  uint64_t stopped = 0;
};
Totals Sum(const metrics::Snapshot& snapshot) {
  Totals totals;
  for (const metrics::KindCounts& kind : snapshot.collectives) {
    for (const metrics::CollectiveCounts& counts : kind.classes) {
      totals.operations += counts.operations;
      totals.bytes += counts.bytes;
    }
  }
  for (const metrics::ProfilerEvents& events : snapshot.profiler.events) {
    totals.started += events.started;
    totals.stopped += events.stopped;
  }
  return totals;
}

// The port of this process's page.
int Port() {
  static const int port = railhead::testing::FreePort();
  return port;
}

class TablesEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    ::setenv("RAILHEAD_METRICS_PORT", absl::StrCat(Port()).c_str(), 1);
    ::setenv("RAILHEAD_JOB", "train", 1);
    for (const char* launcher : {"RANK", "WORLD_SIZE"}) ::unsetenv(launcher);
  }
};
const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new TablesEnvironment);

template <class Table>
class TablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Warnings().clear();
    ::unsetenv("RAILHEAD_NCCL_PROFILER");
    ::unsetenv("RAILHEAD_NCCL_KERNEL_EVENTS");
    before_ = Sum(Counts());
  }
  Totals before_;
};

using Versions = ::testing::Types<abi::ProfilerV1Table, abi::ProfilerV2Table, abi::ProfilerV3Table,
                                  abi::ProfilerV4Table, abi::ProfilerV5Table, abi::ProfilerV6Table,
                                  abi::ProfilerV7Table>;
TYPED_TEST_SUITE(TablesTest, Versions);

TYPED_TEST(TablesTest, CallsAreOnThePageOnceTheCommunicatorHasEnded) {
  Nccl<TypeParam> nccl;
  EXPECT_STREQ(nccl.table.name, "Railhead");
  EXPECT_EQ(nccl.mask, kOwnMask);
  ASSERT_NE(nccl.context, nullptr);
  for (int i = 0; i < 3; ++i) nccl.AllGather();
  nccl.Finalize();
  const metrics::Snapshot counts = Counts();
  const Totals totals = Sum(counts);
  EXPECT_EQ(totals.operations - this->before_.operations, 3U);
  // Of 4 ranks: NCCL has told it, or the highest rank is 3.
  EXPECT_EQ(totals.bytes - this->before_.bytes, 3U * 4 * 1'000'000);
  EXPECT_EQ(totals.started - this->before_.started, 3U * (1 + 2 + 4));
  EXPECT_EQ(totals.stopped - this->before_.stopped, 3U * (1 + 2 + 4));
  EXPECT_EQ(counts.profiler.dropped, 0U);
  EXPECT_EQ(counts.profiler.silent_peers, 0U);
  const std::string page = railhead::testing::HttpGet(Port(), "/metrics");
  EXPECT_THAT(page, HasSubstr("railhead_collective_operations_total{job=\"train\",rank=\""));
  EXPECT_THAT(page, HasSubstr("source=\"nccl\",collective=\"all_gather\",algorithm=\"ring\","
                              "size_class=\"<=4MiB\"} "));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TYPED_TEST(TablesTest, SenselessCallsDoNoHarm) {
  const auto& table = TheTable<TypeParam>();
  void* handle = nullptr;
  Nccl<TypeParam> nccl;
  typename TypeParam::Event event{};
  EXPECT_EQ(table.start(nccl.context, nullptr, &event), abi::kSuccess);
  EXPECT_EQ(table.start(nccl.context, &handle, nullptr), abi::kSuccess);
  EXPECT_EQ(table.stop(nullptr), abi::kSuccess);
  EXPECT_EQ(table.record(nullptr, 8, nullptr), abi::kSuccess);
  EXPECT_EQ(table.finalize(nullptr), abi::kSuccess);
  // An empty event of every type, and types that nobody knows.
  std::vector<void*> handles = {&event, nccl.context};
  for (int bit = 0; bit < 8 * static_cast<int>(sizeof(event.type)); ++bit) {
    event.type = static_cast<decltype(event.type)>(uint64_t{1} << static_cast<unsigned>(bit));
    event.parent = handles.back();
    for (void* const context : std::vector<void*>{nullptr, &event, nccl.context}) {
      EXPECT_EQ(table.start(context, &handle, &event), abi::kSuccess);
      if (handle != nullptr) handles.push_back(handle);
    }
  }
  for (void* const one : handles) {
    for (int state = -1; state < 40; ++state) {
      EXPECT_EQ(table.record(one, state, nullptr), abi::kSuccess);
    }
    EXPECT_EQ(table.stop(one), abi::kSuccess);
    EXPECT_EQ(table.stop(one), abi::kSuccess);
  }
  // Events are open at the end, and go on after it.
  void* const call = nccl.Collective(nullptr);
  void* const op = nccl.Op(call, false);
  void* const step = nccl.Step(op, 0);
  nccl.Finalize();
  nccl.Finalize();
  nccl.Record(step, 10);
  for (void* const one : {step, op, call}) nccl.Stop(one);
  EXPECT_EQ(nccl.Collective(nullptr), nullptr);
  EXPECT_EQ(Counts().profiler.silent_peers, 0U);
  // It starts again.
  Nccl<TypeParam> again;
  again.AllGather();
  again.Finalize();
  EXPECT_EQ(Sum(Counts()).operations - this->before_.operations, 1U);
}

TYPED_TEST(TablesTest, EventsOfAnotherProcessHaveNoParentHere) {
  Nccl<TypeParam> nccl;
  void* const call = nccl.Collective(nccl.Group());
  // Both are the other process's: this context is no pointer, and this parent is a call of ours.
  void* const context = std::exchange(nccl.context, reinterpret_cast<void*>(0x7f0000001000));
  nccl.Transfer(call, true, 2, ::getpid() + 1);
  nccl.Transfer(nccl.context, true, 2, ::getpid() + 1);
  nccl.context = context;
  nccl.Stop(call);
  nccl.Finalize();
  const metrics::Snapshot counts = Counts();
  EXPECT_EQ(Sum(counts).operations, this->before_.operations) << "its call has no transfers";
  EXPECT_THAT(counts.profiler.waits, ::testing::Contains(::testing::Field(
                                         &metrics::WaitTime::collective, "other_process")));
}

TYPED_TEST(TablesTest, ThreadsAndCommunicatorsAreCountedTogether) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 50;
  std::atomic<bool> end = false;
  std::thread reader([&] {
    while (!end) Counts();
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread] {
      for (int round = 0; round < 3; ++round) {
        Nccl<TypeParam> nccl(thread % 2 == 0 ? "even" : nullptr);
        // NCCL's proxy has a thread of its own.
        for (int i = 0; i < kCalls; ++i) {
          void* const call = nccl.Collective(nccl.Group());
          std::thread proxy;
          if (i % 10 == 0) {
            proxy = std::thread([&] { nccl.Transfer(call, true, 3); });
          } else {
            nccl.Transfer(call, true, 3);
          }
          nccl.Stop(call);
          if (proxy.joinable()) proxy.join();
        }
        nccl.Finalize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  end = true;
  reader.join();
  const Totals totals = Sum(Counts());
  EXPECT_EQ(totals.operations - this->before_.operations, 3U * kThreads * kCalls);
  EXPECT_EQ(totals.started - this->before_.started, 3U * kThreads * kCalls * 5);
  EXPECT_EQ(totals.stopped - this->before_.stopped, 3U * kThreads * kCalls * 5);
}

TYPED_TEST(TablesTest, KernelEventsAreWantedOnlyIfAskedFor) {
  ::setenv("RAILHEAD_NCCL_KERNEL_EVENTS", "1", 1);
  Nccl<TypeParam> nccl;
  EXPECT_EQ(nccl.mask, kOwnMask | 64);
  if constexpr (kVersionOf<TypeParam> >= 4) {
    void* const call = nccl.Collective(nccl.Group());
    typename TypeParam::Event event{};
    event.type = abi::kKernelChannel;
    event.parent = call;
    event.kernel.time = 1'000'000;
    void* const kernel = nccl.Start(event);
    typename TypeParam::State arguments{};
    arguments.kernel.time = 3'000'000;
    EXPECT_EQ(nccl.table.record(kernel, 22, &arguments), abi::kSuccess);
    nccl.Stop(kernel);
    nccl.Stop(call);
  }
  nccl.Finalize();
  EXPECT_EQ(Sum(Counts()).operations - this->before_.operations,
            kVersionOf<TypeParam> >= 4 ? 1U : 0U);
}

TYPED_TEST(TablesTest, WrongSettingsDoNotStopTheJob) {
  ::setenv("RAILHEAD_TIMEOUT_SECONDS", "soon", 1);
  Nccl<TypeParam> nccl;
  ::unsetenv("RAILHEAD_TIMEOUT_SECONDS");
  EXPECT_EQ(nccl.mask, 0);
  nccl.AllGather();
  nccl.Finalize();
  EXPECT_EQ(Sum(Counts()).started, this->before_.started);
  if (kVersionOf<TypeParam> < 4) return;
  ASSERT_THAT(Warnings(), SizeIs(1));
  EXPECT_THAT(Warnings()[0], HasSubstr("RAILHEAD_TIMEOUT_SECONDS='soon'"));
}

TYPED_TEST(TablesTest, AWrongSwitchIsNamed) {
  ::setenv("RAILHEAD_NCCL_KERNEL_EVENTS", "maybe", 1);
  Nccl<TypeParam> nccl;
  EXPECT_NE(nccl.mask, 0);
  EXPECT_EQ(nccl.mask & abi::kKernelChannel, 0);
  nccl.Finalize();
  if (kVersionOf<TypeParam> < 4) return;
  ASSERT_THAT(Warnings(), SizeIs(1));
  EXPECT_THAT(Warnings()[0], HasSubstr("RAILHEAD_NCCL_KERNEL_EVENTS='maybe' is not 0 or 1"));
}

TYPED_TEST(TablesTest, AnotherProfilerThatCannotBeLoadedIsNamedOnce) {
  ::setenv("RAILHEAD_NCCL_PROFILER", "/nowhere/libtrace.so", 1);
  Nccl<TypeParam> nccl;
  EXPECT_EQ(nccl.mask, kOwnMask);
  nccl.AllGather();
  nccl.Finalize();
  EXPECT_EQ(Sum(Counts()).operations - this->before_.operations, 1U);
  if (kVersionOf<TypeParam> < 4) return;
  ASSERT_THAT(Warnings(), SizeIs(1));
  EXPECT_THAT(Warnings()[0], HasSubstr("RAILHEAD_NCCL_PROFILER=/nowhere/libtrace.so cannot be"));
}

TYPED_TEST(TablesTest, AnotherProfilerGetsTheSameEvents) {
  void* const library = ::dlopen(RAILHEAD_OTHER_PROFILER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  OtherProfilerCounts& counts =
      *reinterpret_cast<OtherProfilerFunction>(::dlsym(library, "otherProfilerCounts"))();
  counts = {};
  ::setenv("RAILHEAD_NCCL_PROFILER", RAILHEAD_OTHER_PROFILER, 1);
  if (kVersionOf<TypeParam> < 3) {
    Nccl<TypeParam> nccl;
    EXPECT_EQ(nccl.mask, kOwnMask) << "it does not have this version";
    nccl.AllGather();
    nccl.Finalize();
    EXPECT_EQ(counts.opened, 0);
    EXPECT_EQ(Sum(Counts()).operations - this->before_.operations, 1U);
    return;
  }
  Nccl<TypeParam> nccl;
  Nccl<TypeParam> second;
  EXPECT_EQ(nccl.mask, kOwnMask | counts.mask);
  nccl.AllGather();
  second.AllGather();
  nccl.Transfer(nccl.context, true, 2, ::getpid() + 1);
  nccl.Stop(nccl.Group());
  EXPECT_EQ(counts.started[abi::kGroup], 3);
  EXPECT_EQ(counts.started[abi::kCollective], 2);
  EXPECT_EQ(counts.started[abi::kProxyOp], 4);
  EXPECT_EQ(counts.started[abi::kProxyStep], 8);
  EXPECT_EQ(counts.started, counts.stopped);
  EXPECT_EQ(counts.states, 3 * 8);
  // The other profiler gets no events that it did not ask for, and may change its mask.
  counts.mask = abi::kCollective;
  Nccl<TypeParam> third;
  third.AllGather();
  EXPECT_EQ(third.mask, kOwnMask);
  EXPECT_EQ(counts.started[abi::kCollective], 3);
  EXPECT_EQ(counts.started[abi::kProxyOp], 4);
  EXPECT_EQ(counts.started[abi::kGroup], 4);
  *Chain<TypeParam>::OfProcess().mask() = abi::kGroupApi | abi::kProxyStep;
  third.AllGather();
  EXPECT_EQ(third.mask, kOwnMask | abi::kGroupApi);
  EXPECT_EQ(counts.started[abi::kProxyOp], 6);
  // One whose start fails is left alone.
  counts.fails = true;
  Nccl<TypeParam> alone;
  alone.AllGather();
  EXPECT_EQ(counts.started[abi::kCollective], 4);
  for (const auto* one : {&nccl, &second, &third, &alone}) one->table.finalize(one->context);
  EXPECT_EQ(counts.opened, 4);
  EXPECT_EQ(counts.closed, 3);
  EXPECT_EQ(counts.errors, 0);
  EXPECT_EQ(Sum(Counts()).operations - this->before_.operations, 5U);
  if (kVersionOf<TypeParam> < 4) return;
  ASSERT_THAT(Warnings(), SizeIs(1));
  EXPECT_THAT(Warnings()[0], AllOf(HasSubstr("RAILHEAD_NCCL_PROFILER"), HasSubstr("start")));
}

TEST(LibraryTest, ExportsAllVersionsAndRefusesItselfAsAnotherProfiler) {
  Warnings().clear();
  void* const library = ::dlopen(RAILHEAD_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  for (int version = 1; version <= 7; ++version) {
    EXPECT_NE(::dlsym(library, absl::StrCat("ncclProfiler_v", version).c_str()), nullptr);
  }
  EXPECT_EQ(::dlsym(library, "ncclProfiler_v8"), nullptr);
  ::setenv("RAILHEAD_NCCL_PROFILER", RAILHEAD_NCCL_LIBRARY, 1);
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  using Table = abi::ProfilerV6Table;
  Nccl<Table> nccl(nullptr, 2, *static_cast<const Table*>(::dlsym(library, "ncclProfiler_v6")));
  EXPECT_EQ(nccl.mask, kOwnMask);
  nccl.AllGather();
  nccl.Finalize();
  ASSERT_THAT(Warnings(), SizeIs(1));
  EXPECT_THAT(Warnings()[0], HasSubstr("is Railhead's own plugin"));
  ::setenv("RAILHEAD_METRICS_PORT", absl::StrCat(Port()).c_str(), 1);
}

TEST(WantsTest, APartIsReasonEnoughForTheWhole) {
  EXPECT_TRUE(Wants(abi::kProxyStep, abi::kProxyOp));
  EXPECT_TRUE(Wants(abi::kProxyStep, abi::kCollective));
  EXPECT_TRUE(Wants(abi::kProxyStep, abi::kGroup));
  EXPECT_TRUE(Wants(abi::kProxyStep, abi::kP2pApi));
  EXPECT_TRUE(Wants(abi::kNetPlugin, abi::kProxyStep));
  EXPECT_FALSE(Wants(abi::kProxyOp, abi::kProxyStep));
  EXPECT_FALSE(Wants(abi::kP2p, abi::kCollective));
  EXPECT_FALSE(Wants(abi::kKernelChannel, abi::kProxyOp));
  EXPECT_FALSE(Wants(0, abi::kGroup));
  EXPECT_TRUE(Wants(abi::kCopySync, abi::kCopyCollective));
  EXPECT_TRUE(Wants(uint64_t{1} << 40, uint64_t{1} << 40));
}

}  // namespace
}  // namespace railhead::nccl
