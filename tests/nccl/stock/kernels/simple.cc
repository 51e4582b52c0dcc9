// SPDX-License-Identifier: Apache-2.0
//
// Protocol Simple: data in slots, and counters of filled and free ones.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "tests/nccl/stock/kernels/primitives.h"

namespace railhead::stock {
namespace {

size_t DividedUp(size_t a, size_t b) { return (a + b - 1) / b; }

}  // namespace

void Primitives::Simple(const Step& step) {
  const size_t element = element_bytes();
  const uint64_t steps = slicing_.steps_per_slice;
  const int slot = slicing_.slot_bytes != 0
                       ? slicing_.slot_bytes
                       : communicator_.buffer_bytes[kSimple] / static_cast<int>(kSlots);
  const size_t largest = static_cast<size_t>(slot) / element * steps;
  const size_t slice = std::max(DividedUp(step.elements, 16 * slicing_.slices) * 16, largest / 32);
  size_t done = 0;
  for (size_t i = 0; i < slicing_.slices; ++i) {
    const size_t count = std::min(slice, step.elements - done);
    std::vector<const char*> received;
    std::vector<char*> sent;
    for (const End& end : step.receive ? receive_ : std::vector<End>()) {
      if (!WaitForData(end, steps)) return;
      received.push_back(SlotOf(version_, *end.connection, end.step));
    }
    for (const End& end : step.send ? send_ : std::vector<End>()) {
      if (!WaitForRoom(end, steps)) return;
      SetBytes(version_, *end.connection, end.step, count * element);
      sent.push_back(SlotOf(version_, *end.connection, end.step));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (count != 0) {
      char* const target = step.target == nullptr ? nullptr : step.target + done * element;
      char* const result = sent.empty() ? target : sent.front();
      Combine(result, step.source == nullptr ? nullptr : step.source + done * element, received,
              count, step.last);
      for (char* const other : sent) {
        if (other != result) std::memcpy(other, result, count * element);
      }
      if (target != nullptr && target != result) std::memmove(target, result, count * element);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (step.receive) {
      for (End& end : receive_) *end.connection->head = end.step += steps;
    }
    if (step.send) {
      for (End& end : send_) *end.connection->tail = end.step += steps;
    }
    done += count;
  }
}

}  // namespace railhead::stock
