// SPDX-License-Identifier: Apache-2.0
//
// A barrier is one chunk without bytes: each rank fills it, and waits for all others. An
// announcement is one without that wait.
#include "runtime/shm/group.h"

namespace railhead::shm {

absl::Status Group::Barrier(const Patience& patience) {
  const int64_t number = Number(0);
  lanes_.Advance(Progress::kFilled, number);
  if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, patience); !filled.ok()) {
    return filled;
  }
  lanes_.ReducedLater(number);
  done_ = number;
  return absl::OkStatus();
}

absl::Status Group::Announce(const Patience& patience) {
  const int64_t number = Number(0);
  // Before that, some ranks may still have to read this rank's notice.
  if (absl::Status free = AwaitPlace(number, true, patience); !free.ok()) return free;
  lanes_.Advance(Progress::kFilled, number);
  lanes_.ReducedLater(number);
  done_ = number;
  return lanes_.CompareUnawaited();
}

}  // namespace railhead::shm
