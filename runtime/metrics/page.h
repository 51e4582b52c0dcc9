// SPDX-License-Identifier: Apache-2.0
//
// The /metrics page of a process's ranks. The data path only counts in atomics; this turns
// snapshots of them into Prometheus' families whenever somebody asks.
#ifndef RAILHEAD_RUNTIME_METRICS_PAGE_H_
#define RAILHEAD_RUNTIME_METRICS_PAGE_H_

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::metrics {

// The names, labels and meanings are those of the project's list of metrics.
std::vector<prometheus::MetricFamily> ToFamilies(const std::vector<Snapshot>& ranks);

// A web server for the page. Thread-safe.
class Server {
 public:
  virtual ~Server() = default;
  // The port it listens on.
  virtual int port() const = 0;
};

// Serves /metrics on all addresses at `port` (0: any free one) until destroyed. `read` is called
// from the server's threads. Unavailable when the port is taken.
absl::StatusOr<std::unique_ptr<Server>> Serve(int port,
                                              const std::function<std::vector<Snapshot>()>& read);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PAGE_H_
