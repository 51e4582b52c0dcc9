// SPDX-License-Identifier: Apache-2.0
//
// How fast the arithmetic is: sums of 2, 3 and 4 inputs in memory that the first, the second or no
// cache holds, beside memcpy and a plain loop. Prints a table in Markdown.
//
// usage: railhead_reduce_bench
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "hwy/aligned_allocator.h"
#include "hwy/targets.h"
#include "runtime/reduce/cpu.h"
#include "runtime/reduce/kernels.h"
#include "runtime/reduce/plain_loops.h"
#include "runtime/reduce/reduce.h"

namespace railhead::reduce {
namespace {

constexpr size_t kLargest = size_t{64} << 20;
constexpr size_t kMostInputs = 4;

struct Type {
  rhDataType_t type;
  const char* name;
};

// Signs make no difference to sums.
constexpr Type kTypes[] = {{rhFloat32, "fp32"},  {rhFloat64, "fp64"},    {rhFloat16, "fp16"},
                           {rhBfloat16, "bf16"}, {rhFloat8e4m3, "e4m3"}, {rhFloat8e5m2, "e5m2"},
                           {rhInt8, "int8"},     {rhInt16, "int16"},     {rhInt32, "int32"},
                           {rhInt64, "int64"}};

// Of this thread: on a machine that is shared, time in which it does not run says nothing.
double Seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Gigabytes a second that `work` moves, each call `bytes`: the best of 15 times of at least 2 ms,
// because other programs take away some of the caches and of the memory's bandwidth.
template <class Work>
double Rate(size_t bytes, Work work) {
  work();
  size_t calls = 1;
  double best = 0;
  for (int i = 0; i < 15;) {
    const double begin = Seconds();
    for (size_t call = 0; call < calls; ++call) work();
    const double seconds = Seconds() - begin;
    if (seconds < 0.002) {
      calls *= 2;
    } else {
      best = std::max(best, static_cast<double>(bytes * calls) / seconds / 1e9);
      ++i;
    }
  }
  return best;
}

void Table(const std::vector<const std::byte*>& inputs, std::byte* out, size_t bytes,
           const std::string& name) {
  std::printf("\n## %s a buffer\n\n", name.c_str());
  const double memcpy_rate = Rate(2 * bytes, [&] { std::memcpy(out, inputs[0], bytes); });
  const double streaming_rate =
      Rate(2 * bytes, [&] { Copy(inputs[0], out, bytes, Stores::kStreaming); });
  std::printf("memcpy %.1f GB/s, streaming copy %.1f GB/s.\n\n", memcpy_rate, streaming_rate);
  std::printf("| sum of | inputs | Reduce | streaming | plain loop | best / memcpy |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Type& type : kTypes) {
    const size_t count = bytes / SizeOf(type.type);
    for (size_t k = 2; k <= kMostInputs; ++k) {
      const absl::Span<const std::byte* const> some = absl::MakeConstSpan(inputs).subspan(0, k);
      const Reduction reduction = {type.type, rhSum, 1, {}};
      const size_t moved = (k + 1) * bytes;
      const double normal =
          Rate(moved, [&] { Reduce(reduction, some, out, count, Stores::kNormal); });
      const double streaming =
          Rate(moved, [&] { Reduce(reduction, some, out, count, Stores::kStreaming); });
      std::string plain = "-";
      if (PlainSum(type.type, some, out, count)) {
        plain =
            absl::StrFormat("%.1f", Rate(moved, [&] { PlainSum(type.type, some, out, count); }));
      }
      std::printf("| %s | %zu | %.1f | %.1f | %s | %.0f %% |\n", type.name, k, normal, streaming,
                  plain.c_str(), 100 * std::max(normal, streaming) / memcpy_rate);
    }
  }
}

int Run() {
  std::vector<hwy::AlignedFreeUniquePtr<std::byte[]>> memory;
  std::vector<const std::byte*> inputs;
  for (size_t k = 0; k <= kMostInputs; ++k) {
    // Some lines apart, so that the buffers do not all compete for the same places in the caches.
    const size_t shift = k * 17 * 64;
    memory.push_back(hwy::AllocateAligned<std::byte>(kLargest + shift));
    if (memory.back() == nullptr) return 1;
    // Every type's bytes: finite numbers of ordinary size.
    std::memset(memory.back().get(), 0x31 + static_cast<int>(k), kLargest + shift);
    inputs.push_back(memory.back().get() + shift);
  }
  std::byte* const out = memory.back().get() + kMostInputs * 17 * 64;
  inputs.pop_back();
  const int64_t targets = CompiledTargets() & SupportedTargets();
  std::printf("GB/s of bytes read and written by one thread with Highway's %s code: best of 15.\n",
              hwy::TargetName(targets & -targets));
  Table(inputs, out, size_t{16} << 10, "16 KiB");
  Table(inputs, out, size_t{1} << 20, "1 MiB");
  Table(inputs, out, kLargest, "64 MiB");
  return 0;
}

}  // namespace
}  // namespace railhead::reduce

int main() { return railhead::reduce::Run(); }
