// SPDX-License-Identifier: Apache-2.0
//
// The API server's time of day, estimated from the header Date of its responses. For ages of what
// it has stamped, such as creationTimestamp: this machine's time of day may be wrong, also when the
// process starts. Fed by RestClient, used by the operator's controller of gangs.
#ifndef RAILHEAD_KUBE_SERVER_CLOCK_H_
#define RAILHEAD_KUBE_SERVER_CLOCK_H_

#include <functional>
#include <mutex>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/monotonic.h"

namespace railhead::kube {

// Goes on evenly between responses. Differs from the server's clock by at most the duration of the
// calls and a second. If the server's clock is set, or another server with another clock responds,
// it follows only after all responses of kSettles agree. Thread-safe.
class ServerClock {
 public:
  static constexpr absl::Duration kSettles = absl::Minutes(1);

  // `clock` is monotonic. Before the first response, this clock starts at `time_of_day`, then
  // advances evenly.
  explicit ServerClock(std::function<absl::Time()> clock = MonotonicNow,
                       const std::function<absl::Time()>& time_of_day = absl::Now);

  absl::Time Now() const;

  // Call for the header Date of a response. `sent`: when the request was sent, by `clock`.
  // Ignores what is not a date.
  void Hear(absl::string_view date, absl::Time sent);

 private:
  // Bounds of the server's time minus the clock's.
  struct Ahead {
    absl::Duration least;
    absl::Duration most;

    absl::Duration Nearest(absl::Duration ahead) const;
    bool Fits(absl::Duration ahead) const;
  };

  const std::function<absl::Time()> clock_;
  mutable std::mutex mutex_;  // guards all below
  bool heard_ = false;
  absl::Duration ahead_;
  struct Other {  // what all responses since then agree on
    absl::Duration ahead;
    absl::Time since;
  };
  std::optional<Other> other_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_SERVER_CLOCK_H_
