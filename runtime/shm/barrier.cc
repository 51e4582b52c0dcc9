// SPDX-License-Identifier: Apache-2.0
//
// A barrier is one chunk without bytes: everybody fills it, and waits for everybody.
#include "runtime/shm/group.h"

namespace railhead::shm {

absl::Status Group::Barrier(const Patience& patience) {
  const int64_t number = Number(0);
  lanes_.Advance(Progress::kFilled, number);
  if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, patience); !filled.ok()) {
    return filled;
  }
  lanes_.Advance(Progress::kReduced, number);
  done_ = number;
  return absl::OkStatus();
}

}  // namespace railhead::shm
