// SPDX-License-Identifier: Apache-2.0
//
// How fast ranks on this machine all-reduce through shared memory, beside what its memory allows.
// usage: railhead_shm_bench [RANKS [TYPE]]     prints a table
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/reduce/reduce.h"
#include "runtime/shm/group.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

int Cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Runs body(rank) in as many processes.
void InProcesses(int ranks, const std::function<void(int)>& body) {
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      body(rank);
      _exit(0);
    }
  }
  body(0);
  while (wait(nullptr) > 0) {
  }
}

// Memory of all ranks: the inputs, and then the outputs.
Window MakeWindow(int ranks, size_t bytes) {
  Window window;
  for (int rank = 0; rank < ranks; ++rank) {
    window.segments.push_back(std::make_shared<const Segment>(*Segment::Create(2 * bytes)));
    window.memory.push_back({window.segments.back()->data(), 2 * bytes});
  }
  return window;
}

void Run(int ranks, rhDataType_t type) {
  const bool crowded = ranks > Cores();
  const size_t largest = size_t{64} << 20U;
  const Segment segment = *Segment::Create(Group::Bytes(ranks));
  const Window window = MakeWindow(ranks, largest);
  std::printf("ranks %d, cores %d, type %d\n%12s %12s %12s %12s %12s\n", ranks, Cores(), type,
              "bytes", "time us", "busbw GB/s", "window us", "busbw GB/s");
  std::fflush(stdout);
  InProcesses(ranks, [&](int rank) {
    Group group(segment.data(), rank, ranks);
    const Patience patience = {group.Look(), absl::Seconds(60), nullptr,
                               crowded,      nullptr,           &group.spread()};
    std::byte* const own = static_cast<std::byte*>(std::aligned_alloc(4096, 2 * largest));
    std::byte* const shared = window.memory[static_cast<size_t>(rank)].data();
    for (std::byte* memory : {own, shared}) std::memset(memory, 0x11, 2 * largest);
    const reduce::Reduction sum = {type, rhSum, 1, {}};
    std::byte* memory = own;
    const auto once = [&](size_t bytes) {
      const size_t count = bytes / reduce::SizeOf(type);
      if (!group.AllReduce(sum, memory, memory + largest, count, patience).ok()) std::abort();
    };
    for (size_t bytes = 8; bytes <= largest; bytes *= 2) {
      const int repeat = static_cast<int>(std::clamp<size_t>((size_t{1} << 28U) / bytes, 10, 2000));
      std::array<double, 2> best = {1e9, 1e9};
      for (int round = 0; round < 6; ++round) {
        // Turn by turn: copied, and in a window.
        for (size_t way = 0; way < best.size(); ++way) {
          memory = way == 0 ? own : shared;
          if (way == 1) group.Open(window);
          for (int i = 0; i < std::max(3, repeat / 10); ++i) once(bytes);
          const Clock::time_point begin = Clock::now();
          for (int i = 0; i < repeat; ++i) once(bytes);
          best[way] = std::min(best[way], Seconds(Clock::now() - begin) / repeat);
          if (way == 1) group.Close(0);
        }
      }
      if (rank == 0) {
        const auto busbw = [&](double seconds) {
          return static_cast<double>(bytes) / seconds / 1e9 * 2 * (ranks - 1) / ranks;
        };
        std::printf("%12zu %12.2f %12.2f %12.2f %12.2f\n", bytes, best[0] * 1e6, busbw(best[0]),
                    best[1] * 1e6, busbw(best[1]));
        std::fflush(stdout);
      }
    }
    // What memory allows: all ranks copy past the caches at once.
    double best = 1e9;
    for (int round = 0; round < 8; ++round) {
      once(8);
      const Clock::time_point begin = Clock::now();
      reduce::Copy(own, own + largest, largest, reduce::Stores::kStreaming);
      once(8);
      best = std::min(best, Seconds(Clock::now() - begin));
    }
    if (rank == 0) {
      const double bandwidth = 2.0 * ranks * static_cast<double>(largest) / best;
      const double least = 2.0 * ranks * static_cast<double>(largest) / bandwidth;
      std::printf("memory: %.1f GB/s read and written; 64 MiB cannot take less than %.0f us\n",
                  bandwidth / 1e9, least * 1e6);
    }
  });
}

}  // namespace
}  // namespace railhead::shm

int main(int argc, char** argv) {
  railhead::shm::Run(argc > 1 ? std::atoi(argv[1]) : 2,
                     static_cast<rhDataType_t>(argc > 2 ? std::atoi(argv[2]) : rhFloat32));
  return 0;
}
