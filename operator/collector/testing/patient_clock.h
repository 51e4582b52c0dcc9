// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_TESTING_PATIENT_CLOCK_H_
#define RAILHEAD_OPERATOR_COLLECTOR_TESTING_PATIENT_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "kube/monotonic.h"

namespace railhead::op::testing {

// A clock that goes only as fast as the threads of its process run: on an idle machine like any
// other, on one so busy that a step of the test takes seconds, slower. So what must not have lasted
// for ten seconds yet has not, however long the steps before took.
class PatientClock {
 public:
  // Later than at any call before, as queues keep the order of what is due by its time.
  absl::Time Now() { return absl::UnixEpoch() + absl::Nanoseconds(++nanos_); }

 private:
  void Run(const std::stop_token& stop) {
    constexpr absl::Duration kMost = absl::Milliseconds(20);
    absl::Time last = kube::MonotonicNow();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const absl::Time now = kube::MonotonicNow();
      nanos_ += absl::ToInt64Nanoseconds(std::min(now - last, kMost));
      last = now;
    }
  }

  std::atomic<int64_t> nanos_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { Run(stop); }};
};

}  // namespace railhead::op::testing

#endif  // RAILHEAD_OPERATOR_COLLECTOR_TESTING_PATIENT_CLOCK_H_
