// SPDX-License-Identifier: Apache-2.0
//
// What memory allows: bytes that threads read and write in a second when each copies 64 MiB past
// the caches, all at once. Best of 12.
//
// usage: railhead_memory_bench [THREADS]     prints one number
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/reduce/reduce.h"

namespace railhead::reduce {
namespace {

constexpr size_t kBytes = size_t{64} << 20U;
constexpr int kRounds = 12;

using Clock = std::chrono::steady_clock;

double BytesPerSecond(int threads) {
  Clock::time_point last = Clock::now();
  double best = 1e9;
  // Called by the last one to arrive, before anybody goes on; first when all buffers are touched.
  std::barrier meet(threads, [&, first = true]() mutable noexcept {
    const Clock::time_point now = Clock::now();
    if (!first) best = std::min(best, std::chrono::duration<double>(now - last).count());
    first = false;
    last = now;
  });
  std::vector<std::thread> copiers;
  copiers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    copiers.emplace_back([&meet] {
      const std::vector<std::byte> from(kBytes, std::byte{1});
      std::vector<std::byte> to(kBytes);
      meet.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        Copy(from.data(), to.data(), kBytes, Stores::kStreaming);
        meet.arrive_and_wait();
      }
    });
  }
  for (std::thread& copier : copiers) copier.join();
  return 2.0 * threads * static_cast<double>(kBytes) / best;
}

}  // namespace
}  // namespace railhead::reduce

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads < 1 || threads > 64) {
    std::fprintf(stderr, "usage: railhead_memory_bench [THREADS]     from 1 to 64\n");
    return 2;
  }
  std::printf("%.0f\n", railhead::reduce::BytesPerSecond(threads));
  return 0;
}
