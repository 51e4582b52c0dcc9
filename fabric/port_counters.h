// SPDX-License-Identifier: Apache-2.0
//
// What one port of an HCA has counted since its driver was loaded, under one name whatever the
// driver calls it.
//
// Linux shows two folders for a port: counters/, the performance attributes of the InfiniBand
// specification (volume 1, chapter 16.1.3), which a driver has that answers performance queries
// (mlx4, mlx5, hfi1 ...), and hw_counters/, whatever the driver likes, under names of its own.
// Which file means what is one table in port_counters.cc.
//
// Frames of PAUSE and PFC are not among them: no driver in Linux shows those in sysfs, and
// `ethtool -S` works inside the network namespace of the interface only.
#ifndef RAILHEAD_FABRIC_PORT_COUNTERS_H_
#define RAILHEAD_FABRIC_PORT_COUNTERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// A counter that the driver does not have, or that could not be read, is absent. Old adapters have
// counters of 4 to 32 bits, which stay at their maximum until somebody resets them.
struct PortCounters {
  // Bytes of RDMA traffic. The InfiniBand counters count words of four bytes, and are converted;
  // what would not fit into 64 bits stays at the maximum. A software device (rxe, siw) counts no
  // bytes: there these are the bytes of the network interface it runs on, and so include all other
  // traffic of that interface, with its Ethernet headers.
  std::optional<uint64_t> transmit_bytes;
  std::optional<uint64_t> receive_bytes;

  // RoCE congestion control. A receiver that gets packets that a switch has marked (ECN) answers
  // with congestion notification packets (CNP); a sender that gets those slows down.
  std::optional<uint64_t> ecn_marked;   // marked packets received
  std::optional<uint64_t> cnp_sent;     // as a receiver
  std::optional<uint64_t> cnp_handled;  // as a sender

  std::optional<uint64_t> out_of_sequence;    // packets received out of order: others were lost
  std::optional<uint64_t> retries;            // as a sender: began again, since packets were lost
  std::optional<uint64_t> transmit_discards;  // packets dropped before they left
  std::optional<uint64_t> transmit_waits;     // ticks with data to send and no credit to send it
  std::optional<uint64_t> receive_errors;     // packets received broken
  std::optional<uint64_t> receive_discards;   // packets received whole and dropped
  std::optional<uint64_t> symbol_errors;      // on the physical lanes
  std::optional<uint64_t> link_recoveries;    // retraining that succeeded
  std::optional<uint64_t> link_downed;        // retraining that failed
  std::optional<uint64_t> integrity_errors;   // local physical errors beyond the threshold

  int unreadable = 0;  // files that are there but could not be read, or hold no number

  bool operator==(const PortCounters&) const = default;
};

// Reads the counters of port `port` (from 1) of `hca`. Never fails: what is not there is absent.
// One bad file takes away only the counter it is for, even where another file could stand in: two
// sources of one counter do not count the same, and a counter must not jump between them.
PortCounters ReadPortCounters(const RootFiles& files, const std::string& hca, int port);

// Which of them.
using PortCounter = std::optional<uint64_t> PortCounters::*;

// One of them: some adapters ask their firmware for each file that is read. It stands for RDMA
// traffic only: without bytes of the network interface.
std::optional<uint64_t> ReadPortCounter(const RootFiles& files, const std::string& hca, int port,
                                        PortCounter counter);

// How a counter is called on metrics pages and in messages, and what it means to people. A page
// puts a prefix before the name, and "_total" behind it.
struct PortCounterName {
  PortCounter counter;
  const char* name;
  const char* help;
};

// All of them, those of bytes first.
absl::Span<const PortCounterName> PortCounterNames();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PORT_COUNTERS_H_
