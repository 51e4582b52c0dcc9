// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/stash.h"

#include <algorithm>
#include <cstring>

namespace railhead::rails {

bool Stash::Put(const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
  const bool known = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.header.transfer == header.transfer && entry.header.offset == header.offset;
  });
  if (known) return true;
  if (entries_.size() == kFrames || payload.size() > kBytes - bytes_.size()) return false;
  entries_.push_back({header, payload.size()});
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
  return true;
}

void Stash::Take(uint64_t transfer, absl::FunctionRef<void(const transport::FrameHeader& header,
                                                           absl::Span<const std::byte> payload)>
                                        sink) {
  size_t from = 0;
  size_t kept_bytes = 0;
  size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (entry.header.transfer == transfer) {
      sink(entry.header, absl::MakeConstSpan(bytes_.data() + from, entry.size));
    } else {
      // Closes the gap that those before have left.
      std::memmove(bytes_.data() + kept_bytes, bytes_.data() + from, entry.size);
      kept_bytes += entry.size;
      entries_[kept++] = entry;
    }
    from += entry.size;
  }
  entries_.resize(kept);
  bytes_.resize(kept_bytes);
}

}  // namespace railhead::rails
