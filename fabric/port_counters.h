// SPDX-License-Identifier: Apache-2.0
//
// Counters of one port of an HCA since its driver was loaded, under driver-independent names. Used
// by the node agent's metrics and the runtime's preflight check.
//
// Linux has two directories per port. counters/ has the performance attributes of the InfiniBand
// specification (volume 1, chapter 16.1.3), if the driver answers performance queries (mlx4, mlx5,
// hfi1 ...); hw_counters/ has driver-specific names. One table in port_counters.cc maps files to
// counters.
//
// PAUSE and PFC frames are absent: no Linux driver exposes them in sysfs, and `ethtool -S` only
// works inside the interface's network namespace.
#ifndef RAILHEAD_FABRIC_PORT_COUNTERS_H_
#define RAILHEAD_FABRIC_PORT_COUNTERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// A counter that the driver lacks, or that cannot be read, is absent. Old adapters have counters of
// 4 to 32 bits, which stay at their maximum until reset.
struct PortCounters {
  // Bytes of RDMA traffic. InfiniBand counters of four-byte words are converted, saturating at 64
  // bits. Software devices (rxe, siw) have no byte counters: these are then the bytes of the
  // network interface, including all its other traffic and Ethernet headers.
  std::optional<uint64_t> transmit_bytes;
  std::optional<uint64_t> receive_bytes;

  // RoCE congestion control. A receiver answers packets marked by a switch (ECN) with congestion
  // notification packets (CNP); a sender that gets CNPs slows down.
  std::optional<uint64_t> ecn_marked;   // marked packets received
  std::optional<uint64_t> cnp_sent;     // as a receiver
  std::optional<uint64_t> cnp_handled;  // as a sender

  std::optional<uint64_t> out_of_sequence;    // packets received out of order: others were lost
  std::optional<uint64_t> retries;            // retransmissions as a sender
  std::optional<uint64_t> transmit_discards;  // packets dropped before transmission
  std::optional<uint64_t> transmit_waits;     // ticks with data to send but no credit
  std::optional<uint64_t> receive_errors;     // corrupt packets received
  std::optional<uint64_t> receive_discards;   // intact packets received but dropped
  std::optional<uint64_t> symbol_errors;      // on the physical lanes
  std::optional<uint64_t> link_recoveries;    // successful retraining
  std::optional<uint64_t> link_downed;        // failed retraining
  std::optional<uint64_t> integrity_errors;   // local physical errors above the threshold

  int unreadable = 0;  // files that exist but cannot be read or contain no number

  bool operator==(const PortCounters&) const = default;
};

// Reads the counters of port `port` (from 1) of `hca`. Never fails: missing counters are absent. A
// bad file affects only its counter, without fallback to another file: two sources count
// differently, and a counter must not jump.
PortCounters ReadPortCounters(const RootFiles& files, const std::string& hca, int port);

// Selects a counter.
using PortCounter = std::optional<uint64_t> PortCounters::*;

// Reads one counter: some adapters query firmware for each file. RDMA traffic only: never falls
// back to bytes of the network interface.
std::optional<uint64_t> ReadPortCounter(const RootFiles& files, const std::string& hca, int port,
                                        PortCounter counter);

// Name of a counter in metrics and messages, and its description. Metrics add a prefix and
// "_total".
struct PortCounterName {
  PortCounter counter;
  const char* name;
  const char* help;
};

// Returns all counters; bytes first.
absl::Span<const PortCounterName> PortCounterNames();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PORT_COUNTERS_H_
