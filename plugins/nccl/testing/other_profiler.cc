// SPDX-License-Identifier: Apache-2.0
//
// A profiler plugin for tests of RAILHEAD_NCCL_PROFILER, versions 3 to 7: counts events, and checks
// that it gets its own contexts, handles and parents. Writes its counts on stderr when a
// communicator ends; a test in its process reads them by otherProfilerCounts.
#include "plugins/nccl/testing/other_profiler.h"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>

#include "plugins/nccl/abi/profiler.h"

namespace railhead::nccl {
namespace {

using abi::Result;

constexpr uint64_t kMagic = 0x6f74686572;

struct Object {
  uint64_t magic = kMagic;
  uint64_t type = 0;  // 0: a context
  int stops = 0;
};

struct All {
  std::mutex mutex;
  std::deque<Object> objects;  // kept, so that those that have stopped can be recognised
  OtherProfilerCounts counts;
};

All& TheAll() {
  static auto* const all = new All;
  return *all;
}

// With the mutex held: returns the object of this type, or counts an error.
Object* Check(void* pointer, uint64_t types) {
  auto* const object = static_cast<Object*>(pointer);
  const bool is_right = object != nullptr && object->magic == kMagic &&
                        (types == 0 ? object->type == 0 : (object->type & types) != 0);
  if (!is_right) ++TheAll().counts.errors;
  return is_right ? object : nullptr;
}

uint64_t ParentsOf(uint64_t type) {
  switch (type) {
    case abi::kProxyOp:
    case abi::kKernelChannel:
      return abi::kCollective | abi::kP2p;
    case abi::kProxyStep:
      return abi::kProxyOp;
    default:
      return 0;
  }
}

Result Open(void** context, int* mask) {
  All& all = TheAll();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *context = &all.objects.emplace_back();
  *mask = all.counts.mask;
  ++all.counts.opened;
  return all.counts.fails ? abi::kSystemError : abi::kSuccess;
}

Result InitV3(void** context, int* mask) { return Open(context, mask); }
Result InitV4(void** context, int* mask, const char* /*name*/, uint64_t /*id*/, int /*nodes*/,
              int /*ranks*/, int /*rank*/, abi::LogFunction /*log*/) {
  return Open(context, mask);
}
Result InitV5(void** context, uint64_t /*id*/, int* mask, const char* /*name*/, int /*nodes*/,
              int /*ranks*/, int /*rank*/, abi::LogFunction /*log*/) {
  return Open(context, mask);
}

template <class Event>
Result Start(void* context, void** handle, Event* event) {
  All& all = TheAll();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Check(context, 0);
  if (const uint64_t parents = ParentsOf(event->type)) Check(event->parent, parents);
  if constexpr (requires { event->collective.parent_group; }) {
    if (event->type == abi::kCollective) Check(event->collective.parent_group, abi::kGroup);
  }
  Object& object = all.objects.emplace_back();
  object.type = event->type;
  *handle = &object;
  ++all.counts.started[event->type];
  return abi::kSuccess;
}

Result Stop(void* handle) {
  All& all = TheAll();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Object* const object = Check(handle, ~uint64_t{0});
  if (object == nullptr) return abi::kSuccess;
  if (++object->stops > 1) ++all.counts.errors;
  ++all.counts.stopped[object->type];
  return abi::kSuccess;
}

template <class State>
Result Record(void* handle, int /*state*/, State* /*arguments*/) {
  All& all = TheAll();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Check(handle, ~uint64_t{0});
  ++all.counts.states;
  return abi::kSuccess;
}

Result Finalize(void* context) {
  All& all = TheAll();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Check(context, 0);
  ++all.counts.closed;
  std::fprintf(stderr, "other profiler: %d steps started, %d stopped, %s within their parents\n",
               all.counts.started[abi::kProxyStep], all.counts.stopped[abi::kProxyStep],
               all.counts.errors == 0 ? "all" : "not all");
  return abi::kSuccess;
}

template <class Table>
constexpr Table TableOf(auto init) noexcept {
  return {.name = "Other",
          .init = init,
          .start = Start<typename Table::Event>,
          .stop = Stop,
          .record = Record<typename Table::State>,
          .finalize = Finalize};
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names that are looked up
#define RAILHEAD_EXPORT extern "C" __attribute__((visibility("default"))) constinit
RAILHEAD_EXPORT const abi::ProfilerV3Table ncclProfiler_v3 = TableOf<abi::ProfilerV3Table>(InitV3);
RAILHEAD_EXPORT const abi::ProfilerV4Table ncclProfiler_v4 = TableOf<abi::ProfilerV4Table>(InitV4);
RAILHEAD_EXPORT const abi::ProfilerV5Table ncclProfiler_v5 = TableOf<abi::ProfilerV5Table>(InitV5);
RAILHEAD_EXPORT const abi::ProfilerV6Table ncclProfiler_v6 = TableOf<abi::ProfilerV6Table>(InitV5);
RAILHEAD_EXPORT const abi::ProfilerV7Table ncclProfiler_v7 = TableOf<abi::ProfilerV7Table>(InitV5);

extern "C" __attribute__((visibility("default"))) OtherProfilerCounts* otherProfilerCounts() {
  return &TheAll().counts;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace railhead::nccl
