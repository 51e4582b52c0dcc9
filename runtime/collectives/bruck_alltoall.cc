// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/bruck_alltoall.h"

#include <cstring>
#include <vector>

#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

absl::Status BruckAllToAll(Messenger& messenger, int rank, const std::byte* send,
                           const Parts& send_parts, std::byte* receive,
                           const Parts& /*receive_parts*/) {
  const size_t bytes = send_parts.largest();
  if (bytes == 0) return absl::OkStatus();
  const size_t ranks = send_parts.ranks();
  const auto self = static_cast<size_t>(rank);
  // Place d holds the block that has to go d ranks further, on whichever rank it is.
  std::vector<std::byte> places(ranks * bytes);
  // At most half of the blocks take a step.
  std::vector<std::byte> leaving(ranks / 2 * bytes);
  std::vector<std::byte> arriving(ranks / 2 * bytes);
  for (size_t d = 0; d < ranks; ++d) {
    std::memcpy(places.data() + d * bytes, send + (self + d) % ranks * bytes, bytes);
  }
  for (size_t distance = 1; distance < ranks; distance *= 2) {
    size_t packed = 0;
    for (size_t d = 0; d < ranks; ++d) {
      if ((d & distance) == 0) continue;
      std::memcpy(leaving.data() + packed, places.data() + d * bytes, bytes);
      packed += bytes;
    }
    // Everything that goes so far, in one message.
    const auto to = static_cast<int>((self + distance) % ranks);
    const auto from = static_cast<int>((self + ranks - distance) % ranks);
    const OneEachWay step(Schedule::To(to, leaving.data(), packed),
                          Schedule::From(from, arriving.data(), packed));
    if (absl::Status status = Run(messenger, step); !status.ok()) return status;
    packed = 0;
    for (size_t d = 0; d < ranks; ++d) {
      if ((d & distance) == 0) continue;
      std::memcpy(places.data() + d * bytes, arriving.data() + packed, bytes);
      packed += bytes;
    }
  }
  // What stands in place d now has come from d ranks before.
  for (size_t d = 0; d < ranks; ++d) {
    std::memcpy(receive + (self + ranks - d) % ranks * bytes, places.data() + d * bytes, bytes);
  }
  return absl::OkStatus();
}

}  // namespace railhead::collectives
