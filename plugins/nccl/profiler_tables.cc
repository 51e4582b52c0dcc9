// SPDX-License-Identifier: Apache-2.0
//
// Exported tables: every version of NCCL's profiler interface, over one implementation.
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"
#include "plugins/nccl/abi/profiler.h"
#include "plugins/nccl/name.h"
#include "plugins/nccl/profiler/chain.h"
#include "plugins/nccl/profiler/names.h"
#include "plugins/nccl/profiler/profiler.h"
#include "runtime/base/caught.h"
#include "runtime/comm/api/handle.h"

namespace railhead::nccl {
namespace {

using abi::Result;

constexpr int kMask = abi::kCollective | abi::kP2p | abi::kProxyOp | abi::kProxyStep;
constexpr int kKernelMask = abi::kKernelChannel;
// NCCL up to 2.27 has no events of calls whose group has no handle. The tracker does not know it.
constexpr EventHandle kGroupHandle = 1;
constexpr size_t kLongestName = 64;  // of a communicator

EventHandle HandleOf(const void* pointer) { return reinterpret_cast<EventHandle>(pointer); }
// NCCL keeps handles and contexts as pointers, and never reads what they point to.
// NOLINTNEXTLINE(performance-no-int-to-ptr)
void* PointerOf(EventHandle handle) { return reinterpret_cast<void*>(handle); }

absl::string_view Text(const char* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text);
}

// Returns a variable that only this file reads.
std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Runs a call, whose exceptions must not reach NCCL. A profiler never fails a job.
template <class Body>
Result Guarded(Body body) {
  return Caught(
      [&] {
        body();
        return abi::kSuccess;
      },
      [](const absl::Status&) { return abi::kSuccess; });
}

// What NCCL tells of a communicator.
struct Facts {
  const char* name = nullptr;
  std::optional<uint64_t> id;
  int ranks = 0;  // 0: unknown
  std::optional<int> rank;
  abi::LogFunction log = nullptr;
};

Tracker::Communicator CommunicatorOf(const Facts& facts) {
  Tracker::Communicator communicator;
  communicator.name = std::string(Text(facts.name).substr(0, kLongestName));
  communicator.id = communicator.name.empty() ? "" : absl::StrCat("'", communicator.name, "'");
  if (facts.id.has_value()) {
    absl::StrAppend(&communicator.id, communicator.id.empty() ? "" : " ", absl::Hex(*facts.id));
  }
  communicator.ranks = facts.ranks;
  return communicator;
}

// The functions of a version.
template <class Table, int kVersion>
struct Functions {
  using Event = typename Table::Event;
  using State = typename Table::State;

  static Chain<Table>& Other() { return Chain<Table>::OfProcess(); }

  // `init(table, context, mask)` calls the other profiler's.
  template <class OtherInit>
  static Result Open(void** context, int* mask, const Facts& facts, OtherInit init) {
    if (context == nullptr || mask == nullptr) return abi::kSuccess;
    *context = nullptr;
    const auto warn = [&facts](absl::string_view text) {
      if (facts.log == nullptr) {
        Logger(LogLevel::kWarn, "NCCL plugin").Warn(text);
      } else {
        facts.log(abi::kWarn, abi::kInit, __FILE__, __LINE__, "PROFILER/Railhead: %s",
                  std::string(text).c_str());
      }
    };
    return Guarded([&] {
      const absl::StatusOr<comm::CommunicatorOptions> options = comm::ReadOptions({});
      const absl::Status wrong = options.ok() ? options->setup.problem : options.status();
      if (!wrong.ok()) {
        warn(absl::StrCat("collectives are not counted: ", wrong.message()));
        return;
      }
      const EventHandle handle =
          Profiler::OfProcess().Open(options->setup.settings, CommunicatorOf(facts), facts.rank);
      if (handle == 0) return;
      *context = PointerOf(handle);
      const std::string kernels = Setting("RAILHEAD_NCCL_KERNEL_EVENTS");
      if (!kernels.empty() && kernels != "0" && kernels != "1") {
        warn(absl::StrCat("RAILHEAD_NCCL_KERNEL_EVENTS='", PrintableText(kernels, kLongestName),
                          "' is not 0 or 1; kernels are not timed"));
      }
      *mask = kMask | (kernels == "1" ? kKernelMask : 0);
      const std::string other = Setting("RAILHEAD_NCCL_PROFILER");
      if (other.empty() || other == "none") return;
      const absl::Status chained = OpenOther(other, handle, init);
      if (chained.ok()) {
        Other().Join(mask, *mask);
      } else {
        warn(PrintableText(chained.message()));
      }
    });
  }

  template <class OtherInit>
  static absl::Status OpenOther(const std::string& file, EventHandle communicator, OtherInit init) {
    absl::Status loaded = Other().Load(file, absl::StrCat("ncclProfiler_v", kVersion));
    if (!loaded.ok()) return loaded;
    const Table& table = *Other().table();
    if (table.start == Start) {
      return absl::InvalidArgumentError(
          absl::StrCat("RAILHEAD_NCCL_PROFILER=", file,
                       " is Railhead's own plugin: set it to another profiler's file"));
    }
    void* context = nullptr;
    if (init(table, &context, Other().mask()) != abi::kSuccess) {
      return absl::UnavailableError(
          absl::StrCat("RAILHEAD_NCCL_PROFILER=", file, " does not start"));
    }
    Profiler::OfProcess().With(
        [&](Tracker& tracker, Nanoseconds) { tracker.Attach(communicator, context); });
    return absl::OkStatus();
  }

  static Result InitV1(void** context, int* mask) {
    return Open(context, mask, {},
                [](const auto& table, auto... own) { return table.init(own...); });
  }
  static Result InitV4(void** context, int* mask, const char* name, uint64_t id, int nodes,
                       int ranks, int rank, abi::LogFunction log) {
    return Open(context, mask, {name, id, ranks, rank, log},
                [&](const auto& table, void** its_context, int* its_mask) {
                  return table.init(its_context, its_mask, name, id, nodes, ranks, rank, log);
                });
  }
  static Result InitV5(void** context, uint64_t id, int* mask, const char* name, int nodes,
                       int ranks, int rank, abi::LogFunction log) {
    return Open(context, mask, {name, id, ranks, rank, log},
                [&](const auto& table, void** its_context, int* its_mask) {
                  return table.init(its_context, id, its_mask, name, nodes, ranks, rank, log);
                });
  }

  static Result Start(void* context, void** handle, Event* event) {
    if (handle == nullptr) return abi::kSuccess;
    *handle = nullptr;
    if (event == nullptr) return abi::kSuccess;
    return Guarded([&] {
      // Both are pointers of the other process.
      const bool is_foreign = event->type == abi::kProxyOp && event->proxy_op.pid != ::getpid();
      const bool other_wants =
          Other().table() != nullptr && !is_foreign && Other().Wants(event->type);
      std::optional<Event> other_event;
      void* other_context = nullptr;
      void* other_handle = nullptr;
      const EventHandle started =
          Profiler::OfProcess().With([&](Tracker& tracker, Nanoseconds now) {
            if (other_wants) {
              TranslateParents(tracker, other_event.emplace(*event));
              // Steps have a foreign context if their transfer has.
              const bool is_part = event->type == abi::kProxyStep || event->type == abi::kNetPlugin;
              if (!is_part || other_event->parent != nullptr) {
                other_context = tracker.Attached(HandleOf(context));
              }
            }
            const EventHandle own = Track(tracker, context, *event, is_foreign, now);
            // A step that NCCL starts again has it already.
            other_handle = tracker.Attached(own);
            if (own != 0 || other_context == nullptr || IsOurs(event->type)) return own;
            return tracker.StartOther(now);
          });
      *handle = PointerOf(started == 0 && event->type == abi::kGroup ? kGroupHandle : started);
      if (kVersion < 4 && (event->type == abi::kCollective || event->type == abi::kP2p)) {
        Profiler::OfProcess().LearnRank(event->rank);
      }
      Other().Refresh();
      if (other_context == nullptr || started == 0 || other_handle != nullptr) return;
      if (Other().table()->start(other_context, &other_handle, &*other_event) != abi::kSuccess) {
        return;
      }
      Profiler::OfProcess().With(
          [&](Tracker& tracker, Nanoseconds) { tracker.Attach(started, other_handle); });
    });
  }

  static Result Stop(void* handle) {
    if (handle == nullptr) return abi::kSuccess;
    return Guarded([&] {
      void* other = nullptr;
      const bool has_stopped = Profiler::OfProcess().With([&](Tracker& tracker, Nanoseconds now) {
        other = tracker.Attached(HandleOf(handle));
        return tracker.Stop(HandleOf(handle), now);
      });
      if (has_stopped && other != nullptr) Other().table()->stop(other);
    });
  }

  static Result Record(void* handle, int state, State* arguments) {
    if (handle == nullptr) return abi::kSuccess;
    return Guarded([&] {
      void* other = nullptr;
      Profiler::OfProcess().With([&](Tracker& tracker, Nanoseconds now) {
        other = tracker.Attached(HandleOf(handle));
        if (const std::optional<Stage> stage = StageOf(state)) {
          tracker.SetStage(HandleOf(handle), *stage, now);
        }
        if constexpr (requires { arguments->kernel; }) {
          if (state == abi::kKernelStop && arguments != nullptr) {
            tracker.SetKernelEnd(HandleOf(handle), arguments->kernel.time);
          }
        }
      });
      if (other != nullptr) Other().table()->record(other, state, arguments);
    });
  }

  static Result Finalize(void* context) {
    return Guarded([&] {
      void* other = nullptr;
      Profiler::OfProcess().With(
          [&](Tracker& tracker, Nanoseconds) { other = tracker.Attached(HandleOf(context)); });
      Profiler::OfProcess().Close(HandleOf(context));
      if (other != nullptr) Other().table()->finalize(other);
    });
  }

  static constexpr bool IsOurs(uint64_t type) { return (type & (kMask | kKernelMask)) != 0; }

  static std::optional<Stage> StageOf(int state) {
    switch (state) {
      case abi::kSendGpuWait:
        return Stage::kSendGpu;
      case abi::kSendPeerWait:
        return Stage::kSendPeer;
      case abi::kSendWait:
        return Stage::kSendNetwork;
      case abi::kRecvWait:
        return Stage::kReceiveData;
      case abi::kRecvFlushWait:
        return Stage::kReceiveFlush;
      case abi::kRecvGpuWait:
        return Stage::kReceiveGpu;
      default:
        return std::nullopt;
    }
  }

  // Replaces our handles by the other profiler's.
  static void TranslateParents(Tracker& tracker, Event& event) {
    event.parent = tracker.Attached(HandleOf(event.parent));
    if constexpr (requires { event.collective.parent_group; }) {
      void** const group = event.type == abi::kCollective ? &event.collective.parent_group
                           : event.type == abi::kP2p      ? &event.p2p.parent_group
                                                          : nullptr;
      if (group != nullptr) *group = tracker.Attached(HandleOf(*group));
    }
  }

  static EventHandle Track(Tracker& tracker, void* context, const Event& event, bool is_foreign,
                           Nanoseconds now) {
    switch (event.type) {
      case abi::kCollective:
        return TrackCall(tracker, context, event.rank, event.collective, now);
      case abi::kP2p:
        return TrackCall(tracker, context, event.rank, event.p2p, now);
      case abi::kProxyOp: {
        const Direction direction =
            event.proxy_op.is_send != 0 ? Direction::kSend : Direction::kReceive;
        if (is_foreign) return tracker.StartForeignTransfer(event.proxy_op.peer, direction, now);
        return tracker.StartTransfer(HandleOf(event.parent), event.proxy_op.peer, direction, now);
      }
      case abi::kProxyStep:
        return tracker.StartStep(HandleOf(event.parent), event.proxy_step.step, now);
      case abi::kKernelChannel: {
        std::optional<uint64_t> time;
        if constexpr (requires { event.kernel.time; }) time = event.kernel.time;
        return tracker.StartKernel(HandleOf(event.parent), time, now);
      }
      default:
        return 0;
    }
  }

  template <class Call>
  static EventHandle TrackCall(Tracker& tracker, void* context, int rank, const Call& call,
                               Nanoseconds now) {
    absl::string_view function;
    absl::string_view type;
    absl::string_view algorithm;
    if constexpr (std::is_pointer_v<decltype(call.function)>) {
      function = Text(call.function);
      type = Text(call.data_type);
      if constexpr (requires { call.algorithm; }) algorithm = Text(call.algorithm);
    } else {
      function = FunctionWord(call.function);
      type = TypeWord(call.data_type);
      if constexpr (requires { call.algorithm; }) algorithm = AlgorithmWord(call.algorithm);
    }
    if (kVersion < 4) tracker.NoteRank(HandleOf(context), rank);
    return tracker.StartCall(HandleOf(context), NameOf(function, algorithm),
                             call.count * ElementBytes(type), now);
  }
};

template <class Table, int kVersion>
constexpr Table TableOf(auto init) noexcept {
  using Own = Functions<Table, kVersion>;
  return {.name = kName,
          .init = init,
          .start = Own::Start,
          .stop = Own::Stop,
          .record = Own::Record,
          .finalize = Own::Finalize};
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names that NCCL looks up
#define RAILHEAD_PROFILER(number, Init)                                                   \
  extern "C" __attribute__((visibility(                                                   \
      "default"))) constinit const abi::ProfilerV##number##Table ncclProfiler_v##number = \
      TableOf<abi::ProfilerV##number##Table, number>(                                     \
          Functions<abi::ProfilerV##number##Table, number>::Init)

RAILHEAD_PROFILER(1, InitV1);
RAILHEAD_PROFILER(2, InitV1);
RAILHEAD_PROFILER(3, InitV1);
RAILHEAD_PROFILER(4, InitV4);
RAILHEAD_PROFILER(5, InitV5);
RAILHEAD_PROFILER(6, InitV5);
RAILHEAD_PROFILER(7, InitV5);
// NOLINTEND(readability-identifier-naming)

}  // namespace railhead::nccl
