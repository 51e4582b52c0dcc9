// SPDX-License-Identifier: Apache-2.0
//
// Writer of RailReports: maintains one for each job that has or had a fault; a job that never had
// one has no report. Used by Collector.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/queue/work_queue.h"
#include "operator/collector/rail_report.h"

namespace railhead::op {

// Limits: no write without a change; 10 s between writes of a report; 10 writes per second in
// total, with namespaces taking turns. At most 2,000 reports contain a fault, 500 per namespace;
// the last 500 are for namespaces with fewer than 20. Reports of resolved faults stay until their
// jobs are gone, and do not count.
//
// Changes the owners of an existing report only if all of them are gone. The API server may require
// the right to delete the owner for that (OwnerReferencesPermissionEnforcement), which the operator
// lacks. If the change is rejected, the cluster deletes the report with its owners, and a new one
// is created.
//
// The owner of a report may outlive its pods: the report is cleared when the last of them is gone,
// also by a replica that begins to lead after that.
//
// If a write gets no answer, it may have taken effect: the report is read again before anything
// else is decided about it, so that a fault that is over does not stay there.
//
// Rights needed: list, create and patch railreports; patch railreports/status.
class ReportWriter {
 public:
  // Returns the keys of the reports of all existing pods (ReportKeyOf); nullopt while not known.
  using InUse = std::function<std::optional<std::set<std::string>>()>;

  // Reports are in `namespaces`; empty: in any. `api` must outlive the writer. `leads` must be
  // exact at any time. `clock` is monotonic and called concurrently. `in_use` is called on Run's
  // thread.
  ReportWriter(kube::Api* api, const std::set<std::string>& namespaces, std::function<bool()> leads,
               std::function<absl::Time()> clock, InUse in_use);

  // Runs until ShutDown, on one thread.
  void Run();

  // Thread-safe from here on; return quickly.

  void ShutDown();
  void OnLead();  // another replica may have written before
  // Sets the report of a job.
  void Put(const std::string& job, const RailReport& report);
  // Call when the job has no pods left. Clears its report, unless it is deleted with the pods.
  void Forget(const std::string& job);

 private:
  // Server state as known to this replica.
  struct Written {
    std::string owners;  // JSON
    std::string status;  // JSON
    bool is_clear = false;
    std::string job = {};  // its job; empty if this replica has not diagnosed it yet
    // A write is in progress or got no answer: the server may have it, and not what is here.
    bool is_unsure = false;

    bool MayHaveFault() const { return !is_clear || is_unsure; }
  };
  struct Wanted {
    std::string space;
    std::string name;
    std::string owners;
    std::string status;
    bool is_clear = true;
    bool is_certain = true;
    bool is_last = false;  // of a job without pods: forgotten when it is written
  };

  // The following need mutex_.

  // Assigns the report to a job.
  void Claim(const std::string& job, const std::string& key);
  // Wants the report to be clear, and then forgotten.
  void WantEnd(const std::string& job, const std::string& key);
  void Drop(const std::string& job);
  // Likewise, unless it has pods again.
  void DropEnded(const std::string& job);
  bool HasRoom(const std::string& space) const;

  // Return whether they wrote.
  absl::StatusOr<bool> Load();
  // Clears the reports of jobs that no longer have pods.
  absl::StatusOr<bool> Sweep();
  absl::StatusOr<bool> Write(const std::string& job);
  absl::Status List(const std::string& space, const std::string& selector,
                    std::map<std::string, Written>& written);
  // Reads the job's report if it is unsure.
  absl::Status ReadAgain(const std::string& job);
  absl::Status Send(const Wanted& report, bool is_there);
  // Returns the report to write, if any.
  std::optional<Wanted> Next(const std::string& job);
  void Tell(const absl::Status& status);

  kube::Api* const api_;
  const std::vector<std::string> spaces_;  // to list reports in; one empty name: the whole cluster
  const std::function<bool()> leads_;
  const InUse in_use_;
  kube::WorkQueue queue_;  // keys of jobs

  std::string trouble_;  // as logged; used by Run's thread only

  std::mutex mutex_;  // guards all below
  bool loaded_ = false;
  std::map<std::string, Wanted> wanted_;     // by job
  std::map<std::string, Written> written_;   // by namespace and name
  std::map<std::string, std::string> keys_;  // by job; key in written_
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_
