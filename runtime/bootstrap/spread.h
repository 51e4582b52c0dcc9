// SPDX-License-Identifier: Apache-2.0
//
// Random pauses.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_SPREAD_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_SPREAD_H_

#include <random>

#include "absl/time/time.h"

namespace railhead::bootstrap {

// Returns between half of `pause` and all of it, so that ranks that begin together do not go on in
// step.
inline absl::Duration Spread(absl::Duration pause) {
  thread_local std::minstd_rand random{std::random_device()()};
  return pause * std::uniform_real_distribution<double>(0.5, 1)(random);
}

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SPREAD_H_
