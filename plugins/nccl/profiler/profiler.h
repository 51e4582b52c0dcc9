// SPDX-License-Identifier: Apache-2.0
//
// The process's profiler of NCCL: its Tracker behind a lock, its part in the metrics page, and a
// turn every second of the process's watch thread, which logs silent peers. The exported tables
// (profiler_tables.cc) use it. Nothing runs before the first communicator, or after the last.
#ifndef RAILHEAD_PLUGINS_NCCL_PROFILER_PROFILER_H_
#define RAILHEAD_PLUGINS_NCCL_PROFILER_PROFILER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "plugins/nccl/metrics/metrics_page.h"
#include "plugins/nccl/profiler/tracker.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/config/env.h"
#include "runtime/metrics/exporter.h"
#include "runtime/net/watch_thread.h"

namespace railhead::nccl {

// Thread-safe.
class Profiler final : private net::WatchThread::Client {
 public:
  // Kept until the process ends, because counters must not decrease.
  static Profiler& OfProcess();
  Profiler() = default;

  // A communicator starts; `rank` is nullopt if NCCL does not tell it. Returns 0 without room.
  EventHandle Open(const config::Settings& settings, Tracker::Communicator communicator,
                   std::optional<int> rank);
  void Close(EventHandle communicator);
  // Tells this process's rank in a communicator, if Open could not.
  void LearnRank(int rank);

  // Returns the result of `body(tracker, now)`, which runs with the lock held.
  template <class Body>
  auto With(Body body) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return body(tracker_, SystemTime::Steady());
  }

 private:
  std::optional<absl::Time> Turn() override;

  std::mutex opening_;  // held before mutex_
  int open_ = 0;        // communicators
  std::shared_ptr<net::WatchThread> thread_;
  std::shared_ptr<MetricsPage> page_;
  std::unique_ptr<metrics::Exporter::Registration> shown_;

  std::mutex mutex_;
  Tracker tracker_;
  Logger log_;
  bool watching_ = false;
  std::atomic<bool> knows_rank_ = false;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PROFILER_PROFILER_H_
