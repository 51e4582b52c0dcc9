// SPDX-License-Identifier: Apache-2.0
//
// The /metrics page of one rank. The data path only counts in atomics; this turns a snapshot of
// them into Prometheus' families whenever somebody asks.
#ifndef RAILHEAD_RUNTIME_METRICS_PAGE_H_
#define RAILHEAD_RUNTIME_METRICS_PAGE_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/rails/mesh.h"

namespace railhead::metrics {

// Everything that the page shows.
struct Snapshot {
  std::string job;
  int rank = 0;
  std::string degraded_reason;  // "" when the job runs as it was meant to
  uint64_t rejected_connections = 0;
  std::vector<rails::RailTotals> rails;
  std::vector<KindCounts> collectives;  // those that have happened
};

// The names, labels and meanings are those of the project's list of metrics.
std::vector<prometheus::MetricFamily> ToFamilies(const Snapshot& snapshot);

// A web server for the page. Thread-safe.
class Server {
 public:
  virtual ~Server() = default;
  // The port it listens on.
  virtual int port() const = 0;
};

// Serves /metrics on all addresses at `port` (0: any free one) until destroyed. `read` is called
// from the server's threads. Unavailable when the port is taken.
absl::StatusOr<std::unique_ptr<Server>> Serve(int port, const std::function<Snapshot()>& read);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PAGE_H_
