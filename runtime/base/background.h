// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
#define RAILHEAD_RUNTIME_BASE_BACKGROUND_H_

#include <functional>

#include "absl/time/time.h"

namespace railhead {

// Runs `work` in a thread of its own, for which no call waits. The end of the process (exit, or a
// return from main) waits for it until `deadline`; _exit and signals do not. Any thread. Does the
// work at once where no thread can be started.
void RunInBackground(absl::Time deadline, const std::function<void()>& work);

// Waits for all of it, as the end of the process does.
void AwaitBackground();

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_BACKGROUND_H_
