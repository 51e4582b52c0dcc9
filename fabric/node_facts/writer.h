// SPDX-License-Identifier: Apache-2.0
//
// Writes the annotation railhead.io/node-facts, which reader.h reads. Used by the node agent. Pure.
#ifndef RAILHEAD_FABRIC_NODE_FACTS_WRITER_H_
#define RAILHEAD_FABRIC_NODE_FACTS_WRITER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// Facts about a node that are not in its inventory.
struct HostFacts {
  std::optional<GpuDirect> gpu_direct = {};  // if the node has GPUs
  // RLIMIT_MEMLOCK of containers: bytes that a process without CAP_IPC_LOCK may register with an
  // HCA. Nothing: no limit.
  std::optional<uint64_t> memlock_bytes = {};
  std::set<int> rails_in_use = {};  // of HCAs that containers hold, each for itself
  // Mode of the kernel's RDMA subsystem: "shared", "exclusive" (a pod without the host's network
  // sees only HCAs that were moved into it), or "" if unknown.
  std::string rdma_namespaces = {};

  bool operator==(const HostFacts&) const = default;
};

// Returns JSON, version 1, about the offered HCAs of `inventory` and about `host` without
// rails_in_use. Bytes that are not UTF-8 are replaced.
std::string WriteNodeFacts(const NodeInventory& inventory, const HostFacts& host);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NODE_FACTS_WRITER_H_
