// SPDX-License-Identifier: Apache-2.0
//
// Metrics exporter of a process, shared by all its communicators: counters of one rank are summed,
// and those of destroyed communicators are kept, because counters must not decrease.
#ifndef RAILHEAD_RUNTIME_METRICS_EXPORTER_H_
#define RAILHEAD_RUNTIME_METRICS_EXPORTER_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/pod_page.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::metrics {

// Thread-safe.
class Exporter : public std::enable_shared_from_this<Exporter> {
 public:
  using Read = std::function<Snapshot()>;

  // Returns this process's exporter at `port` (0: a new one at any free port), which it shares with
  // the other processes of `pod`: opened by the first caller, closed after its last Registration.
  // Unavailable if another process has the port.
  static absl::StatusOr<std::shared_ptr<Exporter>> At(int port, const std::string& pod);

  // Shows the result of `read`, called on the server's threads, while the Registration lives.
  class Registration {
   public:
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    int port() const { return exporter_->page_->port(); }

   private:
    friend class Exporter;
    Registration(std::shared_ptr<Exporter> exporter, std::list<Read>::iterator place)
        : exporter_(std::move(exporter)), place_(place) {}
    const std::shared_ptr<Exporter> exporter_;
    const std::list<Read>::iterator place_;
  };
  std::unique_ptr<Registration> Register(Read read);

 private:
  Exporter() = default;
  std::vector<Snapshot> Sums() const;

  mutable std::mutex mutex_;
  std::list<Read> reads_;
  std::vector<Snapshot> gone_;  // of ended registrations, by job and rank
  std::unique_ptr<PodPage> page_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_EXPORTER_H_
