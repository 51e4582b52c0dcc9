// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/lines.h"

#include <algorithm>
#include <vector>

#include "tests/nccl/stock/kernels/poll.h"
#include "tests/nccl/stock/kernels/primitives.h"

namespace railhead::stock {

template <class Line>
void Primitives::Lines(const Step& step) {
  const size_t bytes = step.elements * element_bytes();
  const size_t data_of_multiple = Line::kDataBytes * Line::kMultiple;
  const size_t lines = (bytes + data_of_multiple - 1) / data_of_multiple * Line::kMultiple;
  const size_t slot_bytes =
      static_cast<size_t>(communicator_.buffer_bytes[Line::kProtocol]) / kSlots;
  const auto slot = [&](const End& end) {
    return end.connection->buffers[Line::kProtocol] + end.step % kSlots * slot_bytes;
  };
  const auto lines_of = [&](const End& end) {
    return Line::Cleans(end.step) ? slot_bytes / Line::kBytes : lines;
  };

  if (step.send) {
    for (const End& end : send_) {
      if (!WaitForRoom(end, 1)) return;
      SetBytes(version_, *end.connection, end.step, lines_of(end) * Line::kBytes);
    }
  }
  // One line more, so that pointers to no lines are valid, too.
  std::vector<std::vector<char>> contents;
  std::vector<const char*> received;
  for (const End& end : step.receive ? receive_ : std::vector<End>()) {
    std::vector<char>& data = contents.emplace_back((lines + 1) * Line::kDataBytes);
    for (size_t i = 0; i < lines; ++i) {
      const bool loaded = Poll(communicator_.abort, [&] {
        return Line::Load(slot(end) + i * Line::kBytes, end.step + 1, &data[i * Line::kDataBytes]);
      });
      if (!loaded) return;
    }
    received.push_back(data.data());
  }
  std::vector<char> result((lines + 1) * Line::kDataBytes);
  Combine(result.data(), step.source, received, step.elements, step.last);
  if (step.send) {
    for (const End& end : send_) {
      for (size_t i = 0; i < lines_of(end); ++i) {
        Line::Store(slot(end) + i * Line::kBytes, end.step + 1,
                    &result[std::min(i, lines) * Line::kDataBytes]);
      }
    }
  }
  if (step.target != nullptr && bytes != 0) std::memcpy(step.target, result.data(), bytes);

  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (step.send) {
    for (End& end : send_) {
      ++end.step;
      // NCCL's proxy finds the lines of LL by their flags, those of LL128 by the counter.
      if (Line::kCountsSent && end.connection->fifo != nullptr) *end.connection->tail = end.step;
    }
  }
  if (step.receive) {
    for (End& end : receive_) *end.connection->head = ++end.step;
  }
}

template void Primitives::Lines<LlLine>(const Step&);
template void Primitives::Lines<Ll128Line>(const Step&);

}  // namespace railhead::stock
