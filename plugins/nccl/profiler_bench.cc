// SPDX-License-Identifier: Apache-2.0
//
// CPU time of a profiler event in the thread that reports it: all-reduces with 8 steps on each of 4
// channels, in both directions, as NCCL's proxy reports them. With one communicator, and with the
// proxies of others in the same process. Prints Markdown.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "plugins/nccl/abi/profiler.h"

namespace railhead::nccl {

// NOLINTNEXTLINE(readability-identifier-naming): a name that NCCL looks up
extern "C" const abi::ProfilerV6Table ncclProfiler_v6;

namespace {

using Table = abi::ProfilerV6Table;

constexpr int kChannels = 4;
constexpr int kSteps = 8;
constexpr int kCalls = 3000;
constexpr int kRounds = 9;
constexpr std::array<int, 3> kSendStates = {abi::kSendGpuWait, abi::kSendPeerWait, abi::kSendWait};
constexpr std::array<int, 3> kReceiveStates = {abi::kRecvWait, abi::kRecvFlushWait,
                                               abi::kRecvGpuWait};
// Start, three states and stop of a step; start and stop of transfers and of the call.
constexpr int kEvents = 2 + 2 * kChannels * (2 + 5 * kSteps);

double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void* Start(void* context, abi::EventV6 event) {
  void* handle = nullptr;
  ncclProfiler_v6.start(context, &handle, &event);
  return handle;
}

void Transfer(void* context, void* call, bool is_send) {
  abi::EventV6 event{};
  event.type = abi::kProxyOp;
  event.parent = call;
  event.proxy_op = {::getpid(), 0, 1, kSteps, 1 << 20, is_send ? 1 : 0};
  void* const transfer = Start(context, event);
  event = {};
  event.type = abi::kProxyStep;
  event.parent = transfer;
  abi::StateV4 arguments{};
  for (int number = 0; number < kSteps; ++number) {
    event.proxy_step.step = number;
    void* const step = Start(context, event);
    for (const int state : is_send ? kSendStates : kReceiveStates) {
      ncclProfiler_v6.record(step, state, &arguments);
    }
    ncclProfiler_v6.stop(step);
  }
  ncclProfiler_v6.stop(transfer);
}

// Returns the CPU time of an event, in ns.
double Measure() {
  void* context = nullptr;
  int mask = 0;
  ncclProfiler_v6.init(&context, 1, &mask, nullptr, 2, 4, 0, nullptr);
  const double begin = ThreadSeconds();
  for (int i = 0; i < kCalls; ++i) {
    abi::EventV6 event{};
    event.type = abi::kCollective;
    event.collective.function = "AllReduce";
    event.collective.data_type = "ncclFloat32";
    event.collective.algorithm = "RING";
    event.collective.count = 1 << 20;
    void* const call = Start(context, event);
    for (int channel = 0; channel < kChannels; ++channel) {
      Transfer(context, call, true);
      Transfer(context, call, false);
    }
    ncclProfiler_v6.stop(call);
  }
  const double seconds = ThreadSeconds() - begin;
  ncclProfiler_v6.finalize(context);
  return seconds / (static_cast<double>(kCalls) * kEvents) * 1e9;
}

double Median(size_t threads) {
  std::vector<double> values;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> found(threads);
    std::vector<std::thread> running;
    running.reserve(threads);
    for (double& value : found) running.emplace_back([&value] { value = Measure(); });
    for (std::thread& thread : running) thread.join();
    values.insert(values.end(), found.begin(), found.end());
  }
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Run() {
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  std::printf("| communicators in the process | CPU time of an event | of a step (5 events) |\n");
  std::printf("|---|---|---|\n");
  for (const size_t threads : {1, 2, 4}) {
    const double event = Median(threads);
    std::printf("| %zu | %.0f ns | %.2f us |\n", threads, event, 5 * event / 1000);
  }
}

}  // namespace
}  // namespace railhead::nccl

int main() {
  railhead::nccl::Run();
  return 0;
}
