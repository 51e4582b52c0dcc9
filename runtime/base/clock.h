// SPDX-License-Identifier: Apache-2.0
//
// Fast monotonic clock (now.h) for callers that read it a million times per second. The system's
// clock takes 22 ns per read here, this one 10: it counts CPU ticks between reads of the system's
// clock.
#ifndef RAILHEAD_RUNTIME_BASE_CLOCK_H_
#define RAILHEAD_RUNTIME_BASE_CLOCK_H_

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace railhead {

// Source of time.
struct SystemTime {
  // Returns true if ticks have the same constant rate on all cores.
  static bool HasTicks() {
#if defined(__x86_64__)
    constexpr unsigned kPowerManagement = 0x80000007;
    constexpr unsigned kInvariantTicks = 1U << 8U;
    static const bool has = [] {
      unsigned a = 0;
      unsigned b = 0;
      unsigned c = 0;
      unsigned d = 0;
      return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantTicks) != 0;
    }();
    return has;
#else
    return false;
#endif
  }
  static uint64_t Ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
  }
  // Nanoseconds since a fixed time; never jumps.
  static int64_t Steady() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
};

// Use from one thread at a time. Differs from the system's clock by microseconds, also in the time
// between two readings.
template <class Source>
class TickingClock {
 public:
  explicit TickingClock(Source source = Source())
      : source_(source), has_ticks_(source_.HasTicks()) {}

  // Nanoseconds, as SystemTime::Steady.
  int64_t Now() {
    const uint64_t passed = source_.Ticks() - ticks_;
    if (passed >= trusted_) return Set();
    return steady_ + static_cast<int64_t>(passed * rate_ >> kRateBits);
  }

 private:
  static constexpr unsigned kRateBits = 32;
  // Reads of the system's clock at this distance give the rate of ticks to within 1/10000, which is
  // used for twice that time. The machine may be suspended between reads, so that clock and ticks
  // diverge: distant reads are ignored, and so is a rate that differs from the last, or is higher
  // than any CPU's (16 GHz).
  static constexpr int64_t kShortest = 10'000'000;
  static constexpr int64_t kLongest = 1'000'000'000;
  static constexpr uint64_t kLeastRate = (uint64_t{1} << kRateBits) / 16;
  // Reads of both clocks within this number of ticks were not interrupted.
  static constexpr uint64_t kUndisturbed = 4096;

  int64_t Set() {
    const uint64_t before = source_.Ticks();
    const int64_t steady = source_.Steady();
    if (!has_ticks_) return steady;
    const uint64_t ticks = source_.Ticks();
    const int64_t passed = steady - steady_;
    const bool too_early = rate_ == 0 && passed < kShortest;
    if (too_early || ticks - before > kUndisturbed) return steady;
    if (passed >= kShortest && passed <= kLongest && ticks > ticks_) {
      const uint64_t rate = (static_cast<uint64_t>(passed) << kRateBits) / (ticks - ticks_);
      const uint64_t difference = rate > rate_ ? rate - rate_ : rate_ - rate;
      rate_ = rate >= kLeastRate && (rate_ == 0 || difference < rate_ / 1024) ? rate : 0;
    }
    ticks_ = ticks;
    steady_ = steady;
    trusted_ = rate_ == 0 ? 0 : (static_cast<uint64_t>(2 * kShortest) << kRateBits) / rate_;
    return steady;
  }

  Source source_;
  bool has_ticks_;
  uint64_t rate_ = 0;  // nanoseconds per tick, times 2^32; 0: unknown
  // Last read of the system's clock, and for how many ticks the rate is valid.
  uint64_t ticks_ = 0;
  int64_t steady_ = 0;
  uint64_t trusted_ = 0;
};

using Clock = TickingClock<SystemTime>;

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_CLOCK_H_
