// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/unexpected_queue.h"

#include <algorithm>

namespace railhead::rails {

bool UnexpectedQueue::Put(const transport::FrameHeader& header,
                          absl::Span<const std::byte> payload) {
  if (header.transfer - transfers_.begin() > kMaxTransfersAhead) return false;
  while (transfers_.end() <= header.transfer) {
    Transfer& added = transfers_[transfers_.Push()];
    added.frames.clear();
    added.bytes.clear();
  }
  Transfer& transfer = transfers_[header.transfer];
  // A chunk keeps its offset and size for life.
  if (std::any_of(transfer.frames.begin(), transfer.frames.end(),
                  [&header](const Frame& frame) { return frame.header.offset == header.offset; })) {
    return true;
  }
  const size_t cost = FrameCost(payload.size());
  if (cost > kRoom - used_) return false;
  used_ += cost;
  transfer.frames.push_back({header, transfer.bytes.size(), payload.size()});
  if (!header.placed) transfer.bytes.insert(transfer.bytes.end(), payload.begin(), payload.end());
  return true;
}

void UnexpectedQueue::TakeNext(Visitor visitor) {
  if (transfers_.empty()) transfers_.Push();
  Transfer& transfer = transfers_[transfers_.begin()];
  for (const Frame& frame : transfer.frames) {
    used_ -= FrameCost(frame.size);
    const std::byte* const kept = frame.header.placed ? nullptr : &transfer.bytes[frame.begin];
    visitor(frame.header, {kept, frame.size});
  }
  transfer.frames.clear();
  transfer.bytes.clear();
  if (transfer.bytes.capacity() > kKeptBytes) transfer.bytes = {};
  transfers_.Pop();
}

}  // namespace railhead::rails
