// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/absence.h"

#include <algorithm>

namespace railhead::bootstrap {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);

}  // namespace

Absence::Absence(const SilenceLimits& limits, absl::Time now, absl::Time heard)
    : limits_(limits),
      // Later, only if nothing ran.
      heard_(std::max(heard, now - limits.lost - limits.lost / kLooks)),
      next_(now),
      looked_(now) {}

void Absence::Pause(absl::Time now) {
  pause_ = std::min(std::max(2 * pause_, kFirstPause), limits_.pause);
  next_ = now + pause_;
}

void Absence::Refused(absl::Time now) {
  if (!refused_.has_value()) refused_ = now;
  Pause(now);
}

void Absence::Failed(absl::Time now) {
  refused_.reset();
  Pause(now);
}

bool Absence::Gone(absl::Time now, absl::Time sign) {
  const absl::Duration lapse = std::max(now - looked_ - kLongestGap, absl::ZeroDuration());
  looked_ = now;
  heard_ = std::max(heard_ + lapse, sign);
  if (refused_.has_value()) *refused_ += lapse;
  if (now - heard_ >= limits_.gone) return true;
  if (!refused_.has_value()) return false;
  const absl::Duration refused = now - *refused_;
  if (sign == absl::InfinitePast()) return refused >= limits_.refused_without_rails;
  // The process lives: a firewall refuses, or another host that has its address now.
  if (sign > *refused_) {
    refused_.reset();
    return false;
  }
  return refused >= limits_.refused;
}

}  // namespace railhead::bootstrap
