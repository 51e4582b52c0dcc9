// SPDX-License-Identifier: Apache-2.0
#include "kube/server_clock.h"

#include <algorithm>
#include <string>
#include <utility>

namespace railhead::kube {
namespace {

constexpr absl::Duration kTolerance = absl::Seconds(1);  // clocks drift

}  // namespace

absl::Duration ServerClock::Ahead::Nearest(absl::Duration ahead) const {
  return std::clamp(ahead, least, most);
}

bool ServerClock::Ahead::Fits(absl::Duration ahead) const {
  return least - kTolerance <= ahead && ahead <= most + kTolerance;
}

ServerClock::ServerClock(std::function<absl::Time()> clock,
                         const std::function<absl::Time()>& time_of_day)
    : clock_(std::move(clock)), ahead_(time_of_day() - clock_()) {}

absl::Time ServerClock::Now() const {
  const absl::Time now = clock_();
  const std::lock_guard<std::mutex> lock(mutex_);
  return now + ahead_;
}

void ServerClock::Hear(absl::string_view date, absl::Time sent) {
  absl::Time shown;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", date, absl::UTCTimeZone(), &shown, nullptr)) {
    return;
  }
  const absl::Time now = clock_();
  // The server wrote it between `sent` and now, and left out parts of a second.
  const Ahead ahead = {shown - now, shown + absl::Seconds(1) - sent};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!heard_ || ahead.Fits(ahead_)) {
    heard_ = true;
    ahead_ = ahead.Nearest(ahead_);
    other_.reset();
  } else if (!other_ || !ahead.Fits(other_->ahead)) {
    other_ = {ahead.Nearest(ahead_), now};
  } else if (now - other_->since >= kSettles) {
    ahead_ = ahead.Nearest(other_->ahead);
    other_.reset();
  }
}

}  // namespace railhead::kube
