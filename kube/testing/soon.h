// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_TESTING_SOON_H_
#define RAILHEAD_KUBE_TESTING_SOON_H_

#include <chrono>
#include <thread>

#include "absl/time/time.h"
#include "kube/monotonic.h"

namespace railhead::kube::testing {

// Whether `condition` comes true while other threads work: asked every 2 ms, for a minute at most.
template <typename Condition>
bool Soon(Condition condition) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
  while (!condition()) {
    if (MonotonicNow() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace railhead::kube::testing

#endif  // RAILHEAD_KUBE_TESTING_SOON_H_
