// SPDX-License-Identifier: Apache-2.0
//
// Acknowledgement timeout: distinguishes a dead network from a busy peer by the kernel's state of
// the connection. Used by TcpWire.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_ACK_TIMEOUT_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_ACK_TIMEOUT_H_

#include <cstdint>

#include "absl/time/time.h"

namespace railhead::transport {

// A peer that does not read closes its window, and then nothing is in flight; its kernel
// acknowledges what is. (TCP_USER_TIMEOUT would also count the closed window.)
class AckTimeout {
 public:
  struct Signs {
    bool in_flight = false;    // something is sent but not acknowledged, or cannot be sent
    uint32_t retransmits = 0;  // consecutive timeouts of the oldest byte
    absl::Duration since_acknowledgement;
    absl::Duration round_trip;
  };

  // A longer time without acknowledgement ends the connection, if several round trips fit into it
  // or a retransmission had no answer (Linux waits 200 ms and a round trip for that). Leaves time
  // to continue on other rails within half a second.
  static constexpr absl::Duration kLongestSilence = absl::Milliseconds(300);

  // Resolution of Linux' arrival times: one clock tick at most.
  static constexpr absl::Duration kTick = absl::Milliseconds(10);

  // Returns true if the connection is dead. Call it regularly.
  bool Stopped(const Signs& signs, absl::Time now) {
    // A second timeout is sufficient evidence after a long time without calls.
    if (signs.in_flight && signs.retransmits > 1 &&
        signs.since_acknowledgement >= kLongestSilence) {
      return true;
    }
    // After an idle time the last acknowledgement is old, so what counts is how long something has
    // been in flight. An acknowledgement in the same tick counts as later: if a caller sends, gets
    // an acknowledgement, and sends again much later, the idle time must not count.
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

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_ACK_TIMEOUT_H_
