// SPDX-License-Identifier: Apache-2.0
//
// The plugin's part in the pod's metrics page: one object per process, which the network tables and
// the profiler share. Whichever NCCL starts first opens the page; NCCL may use only one of the two.
#ifndef RAILHEAD_PLUGINS_NCCL_METRICS_METRICS_PAGE_H_
#define RAILHEAD_PLUGINS_NCCL_METRICS_METRICS_PAGE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/base/log.h"
#include "runtime/config/env.h"
#include "runtime/metrics/exporter.h"
#include "runtime/metrics/identity.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::nccl {

// Thread-safe.
class MetricsPage : public std::enable_shared_from_this<MetricsPage> {
 public:
  // Returns this process's page at the port of the settings, or null if they exclude one. If
  // another program has the port, warns once, and the page shows nothing: metrics are optional.
  static std::shared_ptr<MetricsPage> OfProcess(const config::Settings& settings,
                                                const Logger& log);

  // Tells this process's rank in a communicator (size 1: unknown). The first one decides which rank
  // the page shows, unless a launcher has told it.
  void Learn(metrics::WorldRank communicator);

  // This process's rank as its launcher has told it; nullopt if none has.
  const std::optional<metrics::WorldRank>& launcher() const { return launcher_; }

  // Adds to the page what `fill` writes into a snapshot with job, rank and source, while the result
  // lives. `fill` is called on threads of the page. Null if the page shows nothing.
  using Fill = std::function<void(metrics::Snapshot& snapshot)>;
  std::unique_ptr<metrics::Exporter::Registration> Show(Fill fill);

 private:
  explicit MetricsPage(const config::Settings& settings);

  const std::string job_;
  std::optional<metrics::WorldRank> launcher_;
  std::shared_ptr<metrics::Exporter> exporter_;  // null: shows nothing
  std::mutex mutex_;
  std::optional<metrics::WorldRank> communicator_;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_METRICS_METRICS_PAGE_H_
