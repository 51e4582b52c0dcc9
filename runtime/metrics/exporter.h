// SPDX-License-Identifier: Apache-2.0
//
// Metrics exporter of a process, shared by all its communicators: their counters are summed, and
// those of destroyed communicators are kept, because counters must not decrease. The first 32 names
// of communicators have series of their own; later ones are counted together, as "others", so that
// a program that makes communicators in a loop does not make series without end.
#ifndef RAILHEAD_RUNTIME_METRICS_EXPORTER_H_
#define RAILHEAD_RUNTIME_METRICS_EXPORTER_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/log.h"
#include "runtime/metrics/pod_page.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::metrics {

// Thread-safe.
class Exporter : public std::enable_shared_from_this<Exporter> {
 public:
  using Read = std::function<Snapshot()>;

  // Returns this process's exporter at `port` (0: a new one at any free port), which it shares with
  // the other processes of `pod`: opened by the first caller, closed after its last Registration.
  // Unavailable if another process has the port. A forked child has its own. `log` gets warnings
  // about the page.
  static absl::StatusOr<std::shared_ptr<Exporter>> At(int port, const std::string& pod,
                                                      const Logger& log);

  // Shows the result of `read`, called on the server's threads, while the Registration lives. All
  // that are registered at one time have one job and rank (identity.h).
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
  static absl::StatusOr<std::shared_ptr<Exporter>> Open(int port, const std::string& pod,
                                                        const Logger& log);
  // nullopt before the first registration.
  std::optional<Snapshot> Sum();
  // With mutex_ held: adds it to the sum of the process.
  void AddTo(std::optional<Snapshot>& sum, Snapshot snapshot);

  std::mutex mutex_;
  std::list<Read> reads_;
  std::optional<Snapshot> gone_;  // of ended registrations
  std::set<std::string> names_;   // of communicators, those that have series of their own
  std::unique_ptr<PodPage> page_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_EXPORTER_H_
