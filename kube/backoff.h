// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before the next try. Pure.
#ifndef RAILHEAD_KUBE_BACKOFF_H_
#define RAILHEAD_KUBE_BACKOFF_H_

#include <functional>

#include "absl/time/time.h"

namespace railhead::kube {

// Returns a uniform random number in [0, 1).
using Random = std::function<double()>;

// One for each thread: seeded by the system, not thread-safe.
Random SystemRandom();

struct BackoffOptions {
  absl::Duration first = absl::Seconds(1);
  absl::Duration longest = absl::Seconds(30);
};

// After `failures` (1 or more) in a row: `first`, doubled with every further one, `longest` at
// most; of that, between a half and the whole, so that those who failed together do not come back
// together.
absl::Duration PauseAfter(const BackoffOptions& options, int failures, double random);

// Paces something that is tried again and again, forever: failures in a row are counted until a try
// has lasted for as long as the longest pause, so that one which ends soon each time is slowed down
// whether it fails or not.
class Backoff {
 public:
  Backoff(BackoffOptions options, Random random);

  // Returns the delay after a try of length `lasted`.
  absl::Duration After(absl::Duration lasted);

 private:
  const BackoffOptions options_;
  const Random random_;
  int failures_ = 0;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_BACKOFF_H_
