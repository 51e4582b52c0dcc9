// SPDX-License-Identifier: Apache-2.0
//
// Work that its caller does not wait for: the end of a communicator that takes long, and the file
// of the flight recorder.
#ifndef RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
#define RAILHEAD_RUNTIME_BASE_BACKGROUND_H_

#include <functional>

#include "absl/time/time.h"

namespace railhead {

// Runs `work` on a separate thread without waiting for it. The end of the process (exit, or return
// from main) waits for it until `deadline`; _exit and signals do not. Thread-safe. Runs the work at
// once if no thread can be started.
void RunInBackground(absl::Time deadline, const std::function<void()>& work);

// Waits for all background work, as the end of the process does.
void AwaitBackground();

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
