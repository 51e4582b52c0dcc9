// SPDX-License-Identifier: Apache-2.0
//
// Sleeping on a word of shared memory, across processes.
#ifndef RAILHEAD_RUNTIME_SHM_FUTEX_H_
#define RAILHEAD_RUNTIME_SHM_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "absl/time/time.h"

namespace railhead::shm {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Sleepers wake up after this time, to check whether the job has ended.
inline constexpr absl::Duration kLongestSleep = absl::Milliseconds(20);

// Pauses between two reads of a word that another core writes.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Gets a cache line for writing now instead of at the next write.
inline void FetchToWrite(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Sleeps while the word is `value`.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t value, absl::Duration limit) {
  const timespec timeout = absl::ToTimespec(limit);
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

inline void FutexWakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_FUTEX_H_
