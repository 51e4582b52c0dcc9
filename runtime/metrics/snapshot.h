// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_
#define RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/gpu_direct.h"
#include "fabric/port_counters.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/start.h"
#include "runtime/rails/mesh.h"

namespace railhead::metrics {

// What the port of an RDMA rail has counted: for all that use it, not for this job alone.
struct PortSnapshot {
  rails::RailName name;
  fabric::PortCounters counters;
};

// How the NIC of a rail reads memory of GPUs.
struct GpuDirectSnapshot {
  rails::RailName name;
  fabric::GpuDirectWay way = fabric::GpuDirectWay::kNone;
};

// Everything that the page shows of one rank.
struct Snapshot {
  std::string job;
  int rank = 0;
  std::string degraded_reason;  // "" when the job runs as it was meant to
  std::optional<Start> start;   // nothing once its communicator is gone
  uint64_t rejected_connections = 0;
  std::vector<rails::RailTotals> rails;
  std::vector<PortSnapshot> ports;
  std::vector<GpuDirectSnapshot> gpu_direct;  // none while no memory of a GPU is known
  std::vector<KindCounts> collectives;        // those that have happened
};

// Adds what another communicator of the same rank has counted. A rail that both have works when it
// works for both, and has the lesser weight. A port that both have is the same one, so
// its counts are not summed: those of `other`, which has been read later, stand. So does the worse
// way to memory of GPUs. How the rank
// started is what `sum` says, the first communicator that is left.
void Add(const Snapshot& other, Snapshot& sum);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_
