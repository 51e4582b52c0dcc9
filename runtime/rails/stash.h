// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RAILS_STASH_H_
#define RAILHEAD_RUNTIME_RAILS_STASH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// Frames of transfers that nobody has asked for yet. Without it such a frame would stay with its
// link and hold up what comes behind it; and that may be the repeat of an older chunk, lost with
// another rail, without which nobody ever asks (peer.h). It is bounded, and the sender knows by how
// much.
class Stash {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;
  static constexpr size_t kFrames = 64;

  Stash() {
    bytes_.reserve(kBytes);
    entries_.reserve(kFrames);
  }

  // Keeps a copy, unless there is one. Returns false when there is no room.
  bool Put(const transport::FrameHeader& header, absl::Span<const std::byte> payload);

  // Hands the frames of a transfer out, and forgets them.
  void Take(uint64_t transfer, absl::FunctionRef<void(const transport::FrameHeader& header,
                                                      absl::Span<const std::byte> payload)>
                                   sink);

 private:
  struct Entry {
    transport::FrameHeader header;
    size_t size = 0;
  };
  // In the order of arrival; the payloads lie in `bytes_` one behind the other.
  std::vector<Entry> entries_;
  std::vector<std::byte> bytes_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_STASH_H_
