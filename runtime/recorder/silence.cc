// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/silence.h"

#include <algorithm>
#include <cstddef>

namespace railhead::recorder {
namespace {

// Returns for how long the rank's operation or transfers have made no progress.
absl::Duration Waits(const Position& position) {
  absl::Duration waits = position.transfers.still;
  if (position.last.has_value() && position.last->state == State::kRunning) {
    waits = std::max(waits, position.last->still);
  }
  return waits;
}

}  // namespace

void Silence::Note(absl::Time asked, absl::Time now, absl::Duration moment,
                   std::vector<Seen>& ranks) {
  ranks_.resize(ranks.size());
  const bool anew = now - noted_ >= timeout_ / 2;
  // A query takes much less, unless this process was stopped during it.
  const absl::Time began = now - asked < timeout_ / 4 ? asked : now;
  noted_ = now;
  silent_since_ = absl::InfiniteFuture();
  waiting_since_ = absl::InfiniteFuture();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    Seen& seen = ranks[rank];
    Known& known = ranks_[rank];
    const bool answered = seen.how == Seen::How::kAnswered;
    if (answered) {
      known.position = seen.position;
      waiting_since_ = std::min(waiting_since_, now - Waits(seen.position));
    }
    if (answered || seen.how == Seen::How::kLeft) {
      known.silent_since = absl::InfiniteFuture();
      continue;
    }
    known.silent_since = anew ? began : std::min(known.silent_since, began);
    silent_since_ = std::min(silent_since_, known.silent_since);
    seen.silence = now - known.silent_since;
    if (!known.position.has_value()) continue;
    seen.position = *known.position;
    if (seen.silence < moment) seen.how = Seen::How::kAnswered;
  }
}

bool Silence::Overdue(absl::Time now) const {
  return now - noted_ < timeout_ / 4 && now - silent_since_ >= timeout_ &&
         now - waiting_since_ >= timeout_;
}

void Silence::Clear() {
  ranks_.clear();
  silent_since_ = absl::InfiniteFuture();
}

}  // namespace railhead::recorder
