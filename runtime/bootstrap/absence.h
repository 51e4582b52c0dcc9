// SPDX-License-Identifier: Apache-2.0
//
// Absence of a peer: decides about a connection whose socket was lost, although the peer's kernel
// has not closed it. A fault of the network shows nothing about the peer's process, so the
// connection is dialed anew, and the rails are checked (HangObserver::LastSign). A peer is gone if
//  - no path, neither this one nor the rails, has carried a sign of it for the limit; or
//  - its address refuses connections, as a kernel does whose process has ended, and the rails do
//    not contradict: the address may now be another host's.
//
// Time in which this process did not run (a frozen machine, a stopped process) does not count: it
// could not receive signs then.
//
// Pure: the caller passes the time. Used by TreeConnections.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_ABSENCE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_ABSENCE_H_

#include <optional>

#include "absl/time/time.h"

namespace railhead::bootstrap {

// Times of a tree's connections while they are watched.
struct SilenceLimits {
  // The kernel tests an idle connection after this time, and then at this interval; at least 1 s.
  absl::Duration idle = absl::Seconds(10);
  absl::Duration interval = absl::Seconds(2);
  // A connection whose peer acknowledges nothing for this time is dialed anew.
  absl::Duration lost = absl::Seconds(16);
  // A peer without a sign on any path for this time is gone.
  absl::Duration gone = absl::Seconds(28);
  // So is one whose address refuses connections for this time without a sign from the rails.
  absl::Duration refused = absl::Seconds(2);
  // As `refused`, for a peer of which the rails have never had a sign. A firewall that is reloaded
  // refuses for a moment, too.
  absl::Duration refused_without_rails = absl::Milliseconds(500);
  // Duration of one attempt to connect, and the longest pause between two.
  absl::Duration attempt = absl::Seconds(2);
  absl::Duration pause = absl::Seconds(1);
  // A process that uses its connections no longer waits this long for peers to get what it has sent
  // last. Longer than a lost packet needs after an interruption of a few seconds.
  absl::Duration farewell = absl::Seconds(8);
};

// Number of checks of a socket within the time after which it counts as lost.
inline constexpr int kLooks = 8;

class Absence {
 public:
  // The last argument: time of the peer's last sign on the lost socket.
  Absence(const SilenceLimits& limits, absl::Time now, absl::Time heard);

  // When the next attempt to connect is due, after the last one has failed.
  absl::Time next() const { return next_; }
  // An attempt has failed: the peer's address has refused it, or it has failed in another way.
  void Refused(absl::Time now);
  void Failed(absl::Time now);

  // Returns true if the peer is gone. `sign`: time of its last sign on the rails; InfinitePast
  // without rails. To be called at least each kLongestGap.
  static constexpr absl::Duration kLongestGap = absl::Seconds(1);
  bool Gone(absl::Time now, absl::Time sign);

 private:
  void Pause(absl::Time now);

  SilenceLimits limits_;
  absl::Time heard_;
  absl::Time next_;
  absl::Time looked_;  // the last time
  absl::Duration pause_ = absl::ZeroDuration();
  std::optional<absl::Time> refused_;  // the first of the refusals in a row
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_ABSENCE_H_
