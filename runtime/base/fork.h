// SPDX-License-Identifier: Apache-2.0
//
// Recognizes forked children: objects with threads and connections belong to the process that made
// them. Costs no system call, unlike getpid, so every call can check it.
#ifndef RAILHEAD_RUNTIME_BASE_FORK_H_
#define RAILHEAD_RUNTIME_BASE_FORK_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace railhead {

// Returns the number of forks between the first process that called this and the calling one.
// Thread-safe.
inline uint64_t ForkGeneration() {
  static std::atomic<uint64_t> generation{0};
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

// The process that created this object. Thread-safe.
class OwnProcess {
 public:
  // Returns true in a process forked since then.
  bool IsForeign() const { return generation_ != ForkGeneration(); }

 private:
  const uint64_t generation_ = ForkGeneration();
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_FORK_H_
