// SPDX-License-Identifier: Apache-2.0
//
// How fast ranks on this machine all-reduce through shared memory, beside what its memory allows.
// usage: railhead_shm_bench [RANKS [TYPE]]     prints a table
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
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

struct Shared {
  std::vector<std::byte*> buffers;
};

void Run(int ranks, rhDataType_t type) {
  const bool crowded = ranks > Cores();
  const size_t largest = size_t{64} << 20U;
  const Segment segment = *Segment::Create(Group::Bytes(ranks));
  const Segment limits = *Segment::Create(Group::Bytes(ranks));
  std::printf("ranks %d, cores %d, type %d\n%12s %12s %12s %12s\n", ranks, Cores(), type, "bytes",
              "time us", "algbw GB/s", "busbw GB/s");
  std::fflush(stdout);
  InProcesses(ranks, [&](int rank) {
    Group group(segment.data(), rank, ranks);
    const Patience patience = {group.Look(), absl::Seconds(60), nullptr, crowded};
    std::byte* const send = static_cast<std::byte*>(std::aligned_alloc(4096, largest));
    std::byte* const receive = static_cast<std::byte*>(std::aligned_alloc(4096, largest));
    std::memset(send, 0x11, largest);
    std::memset(receive, 0, largest);
    const reduce::Reduction sum = {type, rhSum, 1, {}};
    const auto once = [&](size_t bytes) {
      if (!group.AllReduce(sum, send, receive, bytes / reduce::SizeOf(type), patience).ok()) {
        std::abort();
      }
    };
    for (size_t bytes = 8; bytes <= largest; bytes *= 2) {
      const int repeat = static_cast<int>(std::clamp<size_t>((size_t{1} << 28U) / bytes, 10, 2000));
      for (int i = 0; i < std::max(3, repeat / 10); ++i) once(bytes);
      double best = 1e9;
      for (int round = 0; round < 5; ++round) {
        once(8);
        const Clock::time_point begin = Clock::now();
        for (int i = 0; i < repeat; ++i) once(bytes);
        best = std::min(best, Seconds(Clock::now() - begin) / repeat);
      }
      if (rank == 0) {
        const double algbw = static_cast<double>(bytes) / best / 1e9;
        std::printf("%12zu %12.2f %12.2f %12.2f\n", bytes, best * 1e6, algbw,
                    algbw * 2 * (ranks - 1) / ranks);
        std::fflush(stdout);
      }
    }
    // What memory allows: all ranks copy past the caches at once.
    double best = 1e9;
    for (int round = 0; round < 8; ++round) {
      once(8);
      const Clock::time_point begin = Clock::now();
      reduce::Copy(send, receive, largest, reduce::Stores::kStreaming);
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
