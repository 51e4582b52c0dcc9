// SPDX-License-Identifier: Apache-2.0
//
// How long a wait looks round before it sleeps: at least as long as a wake-up costs on a usual
// machine, and as long as waits have lasted of late, where that is short. A sleep would then end at
// once, and make the answer late by the time that it takes to fall asleep and to be woken.
#ifndef RAILHEAD_RUNTIME_RAILS_LOOK_ROUND_H_
#define RAILHEAD_RUNTIME_RAILS_LOOK_ROUND_H_

#include <algorithm>

#include "absl/time/time.h"

namespace railhead::rails {

class LookRound {
 public:
  static constexpr absl::Duration kShortest = absl::Microseconds(50);

  // It never gets longer than `longest`. Waits of more are of no use to look through: sleeping
  // makes them longer by little.
  explicit LookRound(absl::Duration longest) : longest_(std::max(longest, kShortest)) {}

  absl::Duration length() const { return length_; }

  // A wait has lasted so long. Twice that is looked through at once, and forgotten slowly: between
  // the waits for a peer there are shorter ones for what this side's own NIC says.
  void Waited(absl::Duration wait) {
    const absl::Duration wanted = wait <= longest_ ? 2 * wait : absl::ZeroDuration();
    length_ = std::clamp(std::max(wanted, length_ - length_ / 8), kShortest, longest_);
  }

 private:
  absl::Duration longest_;
  absl::Duration length_ = kShortest;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_LOOK_ROUND_H_
