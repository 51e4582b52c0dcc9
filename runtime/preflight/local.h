// SPDX-License-Identifier: Apache-2.0
//
// Reads facts of this process's rails without opening them: sysfs, device nodes, limits. Never
// fails; fields that cannot be read stay empty (facts.h).
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/pod_rails.h"
#include "fabric/port_counters.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Reads an RDMA rail. `root` is the path of "/".
RailFacts ReadHca(const std::string& root, const fabric::PodRail& rail);

// Reads a TCP rail: its network interface.
RailFacts ReadInterface(const std::string& root, const rails::RailName& name);

// Returns the bytes this process may pin: RLIMIT_MEMLOCK, or kUnlimited with the capability
// IPC_LOCK, for which the kernel ignores the limit (drivers/infiniband/core/umem.c).
uint64_t MemlockLimit(const std::string& root);

// Returns the counters that increased between two readings, except bytes and ticks without credit.
std::vector<Growth> Grown(const fabric::PortCounters& before, const fabric::PortCounters& after);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_LOCAL_H_
