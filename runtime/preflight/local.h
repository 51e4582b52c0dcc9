// SPDX-License-Identifier: Apache-2.0
//
// Reads what this process can see of its rails without opening them: sysfs, device nodes, limits.
// Nothing fails; what cannot be read stays empty (facts.h).
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/pod_rails.h"
#include "fabric/port_counters.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Of an RDMA rail. `root` stands for "/".
RailFacts ReadHca(const std::string& root, const fabric::PodRail& rail);

// Of a rail over TCP: its network interface.
RailFacts ReadInterface(const std::string& root, const rails::RailName& name);

// How many bytes this process may pin: RLIMIT_MEMLOCK, or kUnlimited for who has the capability
// IPC_LOCK, which the kernel then does not ask for the limit (drivers/infiniband/core/umem.c).
uint64_t MemlockLimit(const std::string& root);

// What has grown between two readings of a port. Bytes, and ticks without credit, always do.
std::vector<Growth> Grown(const fabric::PortCounters& before, const fabric::PortCounters& after);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_
