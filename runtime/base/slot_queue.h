// SPDX-License-Identifier: Apache-2.0
//
// Queue whose entries are numbered from 0 in order of Push. It reuses slots with the memory they
// own: after it has grown to its working size, it does not allocate. Used for frames and messages.
#ifndef RAILHEAD_RUNTIME_BASE_SLOT_QUEUE_H_
#define RAILHEAD_RUNTIME_BASE_SLOT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace railhead {

template <class T>
class SlotQueue {
 public:
  // `capacity`: a power of two. No entry moves while there are at most `capacity` of them.
  explicit SlotQueue(size_t capacity = 32) : slots_(capacity) {}

  // Adds an entry and returns its number. The entry contains the values of its slot's last use.
  uint64_t Push() {
    if (end_ - begin_ == slots_.size()) Grow();
    return end_++;
  }
  void Pop() { ++begin_; }

  bool empty() const { return begin_ == end_; }
  uint64_t begin() const { return begin_; }  // number of the oldest entry
  uint64_t end() const { return end_; }      // number of the next entry
  T& operator[](uint64_t number) { return slots_[number & (slots_.size() - 1)]; }
  const T& operator[](uint64_t number) const { return slots_[number & (slots_.size() - 1)]; }

 private:
  void Grow() {
    std::vector<T> larger(2 * slots_.size());
    for (uint64_t n = begin_; n < end_; ++n) {
      larger[n & (larger.size() - 1)] = std::move((*this)[n]);
    }
    slots_ = std::move(larger);
  }

  // A power of two of them: every frame finds its slot several times, and a division takes longer.
  std::vector<T> slots_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_SLOT_QUEUE_H_
