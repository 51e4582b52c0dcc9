// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/fd.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace railhead::net {
namespace {

// A bit for each descriptor that children close: what they may do between fork and exec is to read
// memory and to close, but not to lock.
constexpr size_t kMost = size_t{1} << 20U;
constexpr size_t kBits = 64;
std::array<std::atomic<uint64_t>, kMost / kBits> kept{};

std::atomic<uint32_t> generation{1};

uint64_t BitOf(int fd) { return uint64_t{1} << static_cast<size_t>(fd) % kBits; }
std::atomic<uint64_t>& WordOf(int fd) { return kept[static_cast<size_t>(fd) / kBits]; }

void CloseInChild() {
  generation.fetch_add(1, std::memory_order_relaxed);
  for (size_t word = 0; word < kept.size(); ++word) {
    uint64_t bits = kept[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      ::close(static_cast<int>(word * kBits) + __builtin_ctzll(bits));
    }
  }
}

}  // namespace

void Fd::KeepFromChildren() {
  if (fd_ < 0 || static_cast<size_t>(fd_) >= kMost) return;
  static const int registered = ::pthread_atfork(nullptr, nullptr, CloseInChild);
  if (registered != 0) return;
  kept_since_ = generation.load(std::memory_order_relaxed);
  WordOf(fd_).fetch_or(BitOf(fd_), std::memory_order_relaxed);
}

bool Fd::Reclaim() const {
  // The child has closed it, and the number may be another file's now.
  if (kept_since_ != generation.load(std::memory_order_relaxed)) return false;
  // Before it is closed: after that the number may be another file's.
  WordOf(fd_).fetch_and(~BitOf(fd_), std::memory_order_relaxed);
  return true;
}

}  // namespace railhead::net
