// SPDX-License-Identifier: Apache-2.0
//
// Byte counts of a rank, in total and per peer and rail. The hang detector compares them to detect
// progress.
#ifndef RAILHEAD_RUNTIME_BASE_TRAFFIC_H_
#define RAILHEAD_RUNTIME_BASE_TRAFFIC_H_

#include <cstddef>
#include <cstdint>

namespace railhead {

// Bytes sent and received by this rank.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const Traffic&) const = default;
  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    return *this;
  }
  Traffic operator-(const Traffic& before) const {
    return {sent - before.sent, received - before.received};
  }
};

// Traffic between this rank and another over one rail.
struct Flow {
  int peer = -1;    // -1: all of them, through shared memory
  size_t rail = 0;  // index among the rails
  Traffic moved;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_TRAFFIC_H_
