// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_PULSE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_PULSE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace railhead::transport {

// Tells a network that swallows everything from a peer that is busy, by what the kernel says of the
// connection. A peer that does not read closes its window, and then nothing is in flight; but its
// kernel acknowledges what is. (TCP_USER_TIMEOUT would count the closed window, too.)
class Pulse {
 public:
  struct Signs {
    bool in_flight = false;    // something is sent and not acknowledged, or cannot be sent
    uint32_t retransmits = 0;  // of the oldest of them, in a row, each after a timeout
    absl::Duration since_acknowledgement;
    absl::Duration round_trip;
  };

  // Silence that lasts longer is the end, if several round trips fit into it or a retransmission
  // has gone unanswered (Linux waits 200 ms and a round trip for that). It leaves time to carry on
  // elsewhere before half a second is over.
  static constexpr absl::Duration kLongestSilence = absl::Milliseconds(300);

  // How coarsely Linux knows when something came: a tick of its clock, at the longest.
  static constexpr absl::Duration kTick = absl::Milliseconds(10);

  // Whether the connection is dead. To be asked again and again.
  bool Stopped(const Signs& signs, absl::Time now) {
    // A second timeout says enough to one who has not looked for long.
    if (signs.in_flight && signs.retransmits > 1 &&
        signs.since_acknowledgement >= kLongestSilence) {
      return true;
    }
    // After a long rest the last acknowledgement is old without meaning anything: what counts is
    // for how long something has been in flight since. One that came in the same tick is as good as
    // a later one: who looks just after sending, is answered, and comes back to send much later
    // must not take the rest for silence.
    if (!signs.in_flight || now - signs.since_acknowledgement + kTick > waits_since_) {
      waits_since_ = signs.in_flight ? now : absl::InfiniteFuture();
      return false;
    }
    if (waits_since_ == absl::InfiniteFuture()) waits_since_ = now;
    if (signs.since_acknowledgement < kLongestSilence) return false;
    return (signs.retransmits == 1 || 3 * signs.round_trip < kLongestSilence) &&
           now - waits_since_ >= kLongestSilence;
  }

 private:
  absl::Time waits_since_ = absl::InfiniteFuture();
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_PULSE_H_
