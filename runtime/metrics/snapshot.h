// SPDX-License-Identifier: Apache-2.0
//
// All data that the metrics page shows of one rank: taken by the communicator, formatted by page.h.
#ifndef RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_
#define RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/gpu_direct.h"
#include "fabric/port_counters.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/profiler_snapshot.h"
#include "runtime/metrics/start.h"
#include "runtime/rails/rail_totals.h"

namespace railhead::metrics {

// Counters of an RDMA rail's port: of all its users, not only of this job.
struct PortSnapshot {
  rails::RailName name;
  fabric::PortCounters counters;
};

// Mechanism by which the NIC of a rail reads GPU memory.
struct GpuDirectSnapshot {
  rails::RailName name;
  fabric::GpuDirectWay way = fabric::GpuDirectWay::kNone;
};

struct Snapshot {
  std::string job;
  int rank = 0;
  // Library whose traffic is counted ("nccl"); "" for Railhead's communicators. A label of all its
  // series.
  std::string source = "";
  std::string degraded_reason;  // "" if not degraded
  std::optional<Start> start;   // nullopt after its communicator is destroyed
  uint64_t rejected_connections = 0;
  std::vector<rails::RailTotals> rails;
  std::vector<PortSnapshot> ports;
  std::vector<GpuDirectSnapshot> gpu_direct;  // empty while no GPU memory is registered
  std::vector<KindCounts> collectives;        // those with calls
  ProfilerSnapshot profiler;
};

// Adds the counters of another communicator of the same rank (rails/rail_totals.h). A shared port's
// counters are not summed: those of `other`, read later, are used, as is the worse method of GPU
// access. `start` is kept from `sum`, the oldest communicator.
void Add(const Snapshot& other, Snapshot& sum);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_SNAPSHOT_H_
