// SPDX-License-Identifier: Apache-2.0
//
// The time of the monotonic clock (now.h), for those who ask a million times a second. The system's
// own takes 22 ns here, and this 10: between two looks at it, it counts the CPU's ticks.
#ifndef RAILHEAD_RUNTIME_BASE_CLOCK_H_
#define RAILHEAD_RUNTIME_BASE_CLOCK_H_

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace railhead {

// Where time comes from.
struct SystemTime {
  // Whether ticks come at the same rate always and on all cores.
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
  // Nanoseconds since some moment, without leaps.
  static int64_t Steady() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
};

// Used by one thread at a time. Right to within microseconds of the system's clock, also in what
// lies between two readings.
template <class Source>
class TickingClock {
 public:
  explicit TickingClock(Source source = Source())
      : source_(source), has_ticks_(source_.HasTicks()) {}

  // Nanoseconds, as SystemTime::Steady says.
  int64_t Now() {
    const uint64_t passed = source_.Ticks() - ticks_;
    if (passed >= trusted_) return Set();
    return steady_ + static_cast<int64_t>(passed * rate_ >> kRateBits);
  }

 private:
  static constexpr unsigned kRateBits = 32;
  // From looks at the system's clock as far apart as this the rate of ticks is known to a ten
  // thousandth, and for twice as long it counts. In between the machine may have slept, and its
  // clock and its ticks not gone alike: what is far apart says nothing, nor does a rate unlike the
  // one before, or that of no CPU (16 GHz).
  static constexpr int64_t kShortest = 10'000'000;
  static constexpr int64_t kLongest = 1'000'000'000;
  static constexpr uint64_t kLeastRate = (uint64_t{1} << kRateBits) / 16;
  // Who looks at both within so many ticks was not interrupted.
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
  uint64_t rate_ = 0;  // nanoseconds in a tick, times 2^32; 0: not known yet
  // The last look at the system's clock, and for how many ticks from then on the rate counts.
  uint64_t ticks_ = 0;
  int64_t steady_ = 0;
  uint64_t trusted_ = 0;
};

using Clock = TickingClock<SystemTime>;

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_CLOCK_H_
