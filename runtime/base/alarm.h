// SPDX-License-Identifier: Apache-2.0
//
// Abort flag: ends every wait of a rank from outside, whether it spins or sleeps. Checked by waits
// for rails and for shared memory.
#ifndef RAILHEAD_RUNTIME_BASE_ALARM_H_
#define RAILHEAD_RUNTIME_BASE_ALARM_H_

#include <atomic>

#include "absl/status/status.h"

namespace railhead {

// When a job fails, `raised` becomes true.
struct Alarm {
  const std::atomic<bool>* raised = nullptr;

  // Cancelled once it is raised.
  absl::Status Check() const {
    const bool rings = raised != nullptr && raised->load(std::memory_order_acquire);
    return rings ? absl::CancelledError("the job has failed") : absl::OkStatus();
  }
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_ALARM_H_
