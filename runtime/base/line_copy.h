// SPDX-License-Identifier: Apache-2.0
//
// Copies into memory that a reader polls while it is written. Kernels of NCCL that use LL128 read a
// received message before its receive is done: the last 8 bytes of each aligned 128 are a flag, and
// must not become visible before the others. memcpy may write its first bytes last.
#ifndef RAILHEAD_RUNTIME_BASE_LINE_COPY_H_
#define RAILHEAD_RUNTIME_BASE_LINE_COPY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace railhead {

// As memcpy; in each aligned line of the target, the last 8 bytes are written last.
inline void LineCopy(std::byte* to, const std::byte* from, size_t size) {
  constexpr size_t kLine = 128, kFlag = 8;
  while (size > 0) {
    const size_t rest = kLine - reinterpret_cast<uintptr_t>(to) % kLine;
    const size_t piece = std::min(rest, size);
    if (piece == kLine) {
      std::memcpy(to, from, kLine - kFlag);
      std::atomic_thread_fence(std::memory_order_release);
      std::memcpy(to + kLine - kFlag, from + kLine - kFlag, kFlag);
    } else {
      const size_t flag = piece == rest ? std::min(kFlag, piece) : 0;
      std::memcpy(to, from, piece - flag);
      std::atomic_thread_fence(std::memory_order_release);
      std::memcpy(to + piece - flag, from + piece - flag, flag);
    }
    to += piece;
    from += piece;
    size -= piece;
  }
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_LINE_COPY_H_
