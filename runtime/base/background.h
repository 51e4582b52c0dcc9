// SPDX-License-Identifier: Apache-2.0
//
// Work that its caller does not wait for: the end of a communicator that takes long, the file of
// the flight recorder, and counters of ports.
#ifndef RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
#define RAILHEAD_RUNTIME_BASE_BACKGROUND_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace railhead {

// Runs `work` on a separate thread without waiting for it. The end of the process (exit, or return
// from main) waits for it until `deadline`; _exit and signals do not. Thread-safe. Runs the work at
// once if no thread can be started.
void RunInBackground(absl::Time deadline, const std::function<void()>& work);

// Does the same for work that may block, which this thread must not: if no thread can be started,
// returns ResourceExhausted and does not run the work.
absl::Status TryRunInBackground(absl::Time deadline, const std::function<void()>& work);

// Returns how many of them are running.
size_t BackgroundJobs();

// Waits for all background work, as the end of the process does.
void AwaitBackground();

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
