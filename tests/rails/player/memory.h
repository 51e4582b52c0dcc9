// SPDX-License-Identifier: Apache-2.0
//
// Buffers of calls, with guards on both sides, in plain memory or in memory of rhMemAlloc.
#ifndef RAILHEAD_TESTS_RAILS_PLAYER_MEMORY_H_
#define RAILHEAD_TESTS_RAILS_PLAYER_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

namespace railhead::player {

inline constexpr size_t kGuard = 64;

// Memory from which Buffers are cut one after the other; it starts again when all are gone.
class Arena {
 public:
  Arena(std::byte* memory, size_t size) : memory_(memory), size_(size) {}

  // Returns null if there is no room.
  std::byte* Take(size_t bytes) {
    if (bytes > size_ || used_ > size_ - bytes) return nullptr;
    std::byte* const taken = memory_ + used_;
    used_ += bytes;
    ++users_;
    return taken;
  }
  void GiveBack() {
    if (--users_ == 0) used_ = 0;
  }
  std::byte* memory() const { return memory_; }
  size_t size() const { return size_; }

 private:
  std::byte* memory_;
  size_t size_;
  size_t used_ = 0;
  int users_ = 0;
};

// `bytes` of memory that begin `shift` bytes behind an address that is a multiple of 64.
class Buffer {
 public:
  Buffer(size_t bytes, size_t shift, Arena* arena) : bytes_(bytes) {
    const size_t whole = bytes + shift + 3 * kGuard;
    std::byte* memory = arena != nullptr ? arena->Take(whole) : nullptr;
    if (memory != nullptr) {
      arena_ = arena;
    } else {
      own_ = std::make_unique<std::byte[]>(whole);
      memory = own_.get();
    }
    const auto address = reinterpret_cast<uintptr_t>(memory) + kGuard;
    begin_ = memory + kGuard + (kGuard - address % kGuard) % kGuard + shift;
    std::memset(begin_ - kGuard, kPattern, kGuard);
    std::memset(begin_, kUntouched, bytes);
    std::memset(begin_ + bytes, kPattern, kGuard);
  }
  ~Buffer() {
    if (arena_ != nullptr) arena_->GiveBack();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return begin_; }
  size_t size() const { return bytes_; }
  // Whether nothing was written in front of it or behind it.
  bool GuardsAreWhole() const {
    const auto whole = [](const std::byte* guard) {
      return std::all_of(guard, guard + kGuard,
                         [](std::byte value) { return value == std::byte{kPattern}; });
    };
    return whole(begin_ - kGuard) && whole(begin_ + bytes_);
  }
  // Whether nothing has been written from this offset on.
  bool IsUntouchedFrom(size_t offset) const {
    return std::all_of(begin_ + offset, begin_ + bytes_,
                       [](std::byte value) { return value == std::byte{kUntouched}; });
  }

 private:
  static constexpr unsigned char kPattern = 0xa5;
  static constexpr unsigned char kUntouched = 0xee;

  size_t bytes_;
  Arena* arena_ = nullptr;
  std::unique_ptr<std::byte[]> own_;
  std::byte* begin_ = nullptr;
};

}  // namespace railhead::player

#endif  // RAILHEAD_TESTS_RAILS_PLAYER_MEMORY_H_
