// SPDX-License-Identifier: Apache-2.0
//
// What a rank found when it started, and will not change while it runs: what it was given, what it
// came to use, and its limits. The operator judges pods by it.
#ifndef RAILHEAD_RUNTIME_METRICS_START_H_
#define RAILHEAD_RUNTIME_METRICS_START_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/rails/peer.h"

namespace railhead::metrics {

// An RDMA rail that the rank was given.
struct GivenRail {
  rails::RailName name;
  std::string link_layer;  // "InfiniBand" or "Ethernet"; "" if unknown
  std::string rate;        // of its port, as sysfs words it; "" if unknown
  int mtu = 0;             // in force, in bytes; 0 if unknown
  // Why it cannot be used, "" if it can; and which of the pre-flight's checks says so:
  // "device_node", "port", "memlock", or "other".
  std::string trouble;
  std::string cause;
};

struct Start {
  int world_size = 1;
  std::string pod;        // RAILHEAD_POD; whose page this is
  std::string transport;  // in use: "verbs", "tcp" or "shm"
  std::string requested;  // RAILHEAD_TRANSPORT
  std::string fallback;   // RAILHEAD_FALLBACK, the strictest of all ranks
  std::string trouble;  // why there are no RDMA rails to look at; "" if there are, or nobody asked
  std::vector<GivenRail> rails;
  std::optional<uint64_t> memlock;        // bytes that the process may pin; nothing: any number
  uint64_t registers = 0;                 // bytes that its links over RDMA would like to pin
  uint64_t least_bytes = 0;               // with less some of them do not work
  std::optional<uint64_t> shared_memory;  // bytes, the size of /dev/shm; nothing: unknown
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_START_H_
