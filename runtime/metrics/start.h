// SPDX-License-Identifier: Apache-2.0
//
// Facts of a rank at its start, constant while it runs: what it was given, what it uses, and its
// limits. The operator diagnoses pods by them.
#ifndef RAILHEAD_RUNTIME_METRICS_START_H_
#define RAILHEAD_RUNTIME_METRICS_START_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/rails/peer.h"

namespace railhead::metrics {

// An RDMA rail that was given to the rank.
struct GivenRail {
  rails::RailName name;
  std::string link_layer;  // "InfiniBand" or "Ethernet"; "" if unknown
  std::string rate;        // of its port, as in sysfs; "" if unknown
  int mtu = 0;             // in force, in bytes; 0 if unknown
  // Why it cannot be used, "" if it can; and the pre-flight check with details: "device_node",
  // "port", "memlock", or "other".
  std::string trouble;
  std::string cause;
};

struct Start {
  int world_size = 1;
  std::string pod;        // RAILHEAD_POD; the pod of this page
  std::string transport;  // in use: "verbs", "tcp" or "shm"
  std::string requested;  // RAILHEAD_TRANSPORT
  std::string fallback;   // RAILHEAD_FALLBACK, the strictest of all ranks
  std::string trouble;    // why RDMA rails are not examined; "" if they are, or were not requested
  // Why any process that knows the name of the job can join it; "" if none can, or it was meant so.
  std::string unauthenticated;
  std::vector<GivenRail> rails;
  std::optional<uint64_t> memlock;        // bytes that the process may pin; nullopt: unlimited
  uint64_t registers = 0;                 // preferred bytes that its RDMA links pin
  uint64_t least_bytes = 0;               // below this some of them do not work
  std::optional<uint64_t> shared_memory;  // size of /dev/shm in bytes; nullopt: unknown
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_START_H_
