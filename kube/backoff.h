// SPDX-License-Identifier: Apache-2.0
//
// Exponential backoff with jitter. Pure: the caller passes random numbers and durations. Used by
// WorkQueue, Reflector and retry loops.
#ifndef RAILHEAD_KUBE_BACKOFF_H_
#define RAILHEAD_KUBE_BACKOFF_H_

#include <functional>

#include "absl/time/time.h"

namespace railhead::kube {

// Returns a uniform random number in [0, 1).
using Random = std::function<double()>;

// Returns a generator seeded by the system. Not thread-safe: create one per thread.
Random SystemRandom();

struct BackoffOptions {
  absl::Duration first = absl::Seconds(1);
  absl::Duration longest = absl::Seconds(30);
};

// Returns the delay after `failures` consecutive failures (1 or more): `first`, doubled for each
// further failure, at most `longest`. `random` scales it to between half and all of that, so that
// clients that failed together do not retry together.
absl::Duration PauseAfter(const BackoffOptions& options, int failures, double random);

// Paces an endless loop of attempts. Counts consecutive failures until an attempt lasts at least
// `longest`; so an attempt that ends soon is delayed even if it succeeds.
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
