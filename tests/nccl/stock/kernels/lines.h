// SPDX-License-Identifier: Apache-2.0
//
// Protocols LL and LL128: data in lines that contain flags, which say of which step a line is.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LINES_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LINES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/nccl/stock/kernels/layout.h"

namespace railhead::stock {

// 16 bytes: two halves of 4 bytes of data and a flag of 32 bits.
struct LlLine {
  static constexpr Protocol kProtocol = kLl;
  static constexpr size_t kBytes = 16, kDataBytes = 8, kMultiple = 1;
  static constexpr bool kCountsSent = false;
  // Flags have 32 bits: before they repeat, every line of a slot is written once.
  static bool Cleans(uint64_t step) { return (step & 0x7ffffff8U) == 0x7ffffff8U; }

  static bool Load(const char* line, uint64_t flag, char* data) {
    const auto* const halves = reinterpret_cast<const volatile uint64_t*>(line);
    const uint64_t low = halves[0], high = halves[1];
    const auto wanted = static_cast<uint32_t>(flag);
    if (low >> 32U != wanted || high >> 32U != wanted) return false;
    const uint64_t value = static_cast<uint32_t>(low) | high << 32U;
    std::memcpy(data, &value, sizeof value);
    return true;
  }
  static void Store(char* line, uint64_t flag, const char* data) {
    auto* const halves = reinterpret_cast<volatile uint64_t*>(line);
    uint64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    halves[0] = static_cast<uint32_t>(value) | flag << 32U;
    halves[1] = value >> 32U | flag << 32U;
  }
};

// 128 bytes, the last 8 of which are the flag. Lines are sent by 16.
struct Ll128Line {
  static constexpr Protocol kProtocol = kLl128;
  static constexpr size_t kBytes = 128, kDataBytes = 120, kMultiple = 16;
  static constexpr bool kCountsSent = true;
  static bool Cleans(uint64_t /*step*/) { return false; }

  static bool Load(const char* line, uint64_t flag, char* data) {
    if (*reinterpret_cast<const volatile uint64_t*>(line + kDataBytes) != flag) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(data, line, kDataBytes);
    return true;
  }
  static void Store(char* line, uint64_t flag, const char* data) {
    std::memcpy(line, data, kDataBytes);
    std::atomic_thread_fence(std::memory_order_release);
    *reinterpret_cast<volatile uint64_t*>(line + kDataBytes) = flag;
  }
};

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LINES_H_
