// SPDX-License-Identifier: Apache-2.0
//
// Page /metrics. The data path only increments atomics; this converts snapshots of them to
// Prometheus' families on request, and serves them.
#ifndef RAILHEAD_RUNTIME_METRICS_PAGE_H_
#define RAILHEAD_RUNTIME_METRICS_PAGE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/families.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::metrics {

// Names, labels and meanings follow the project's list of metrics.
Families ToFamilies(const std::vector<Snapshot>& ranks);

// HTTP server of the page. Thread-safe.
class Server {
 public:
  virtual ~Server() = default;
  // Listening port.
  virtual int port() const = 0;
};

// Serves /metrics on all addresses at `port` (0: any free one) until destroyed. `read` is called on
// the server's threads. Unavailable if the port is taken.
absl::StatusOr<std::unique_ptr<Server>> Serve(int port, const std::function<Families()>& read);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PAGE_H_
