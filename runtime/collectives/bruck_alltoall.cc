// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

absl::Status BruckAllToAll(Messenger& messenger, int rank, const Operation& operation) {
  const size_t bytes = operation.send_parts.largest();
  if (bytes == 0) return absl::OkStatus();
  const auto ranks = static_cast<size_t>(operation.ranks);
  const auto self = static_cast<size_t>(rank);
  // Place d holds the block that has to go d ranks further, on whichever rank it is.
  const auto places = std::make_unique_for_overwrite<std::byte[]>(ranks * bytes);
  // At most half of the blocks take a step.
  const auto leaving = std::make_unique_for_overwrite<std::byte[]>(ranks / 2 * bytes);
  const auto arriving = std::make_unique_for_overwrite<std::byte[]>(ranks / 2 * bytes);
  for (size_t d = 0; d < ranks; ++d) {
    std::memcpy(places.get() + d * bytes, operation.send + (self + d) % ranks * bytes, bytes);
  }
  for (size_t distance = 1; distance < ranks; distance *= 2) {
    size_t packed = 0;
    for (size_t d = 0; d < ranks; ++d) {
      if ((d & distance) == 0) continue;
      std::memcpy(leaving.get() + packed, places.get() + d * bytes, bytes);
      packed += bytes;
    }
    // All blocks that move by this distance, in one message.
    const auto to = static_cast<int>((self + distance) % ranks);
    const auto from = static_cast<int>((self + ranks - distance) % ranks);
    const OneEachWay step(Schedule::To(to, leaving.get(), packed),
                          Schedule::From(from, arriving.get(), packed));
    if (absl::Status status = Run(messenger, step); !status.ok()) return status;
    packed = 0;
    for (size_t d = 0; d < ranks; ++d) {
      if ((d & distance) == 0) continue;
      std::memcpy(places.get() + d * bytes, arriving.get() + packed, bytes);
      packed += bytes;
    }
  }
  // Place d now holds the block from d ranks before.
  for (size_t d = 0; d < ranks; ++d) {
    std::memcpy(operation.receive + (self + ranks - d) % ranks * bytes, places.get() + d * bytes,
                bytes);
  }
  return absl::OkStatus();
}

}  // namespace railhead::collectives
