// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/work_queue.h"
#include "operator/collector/rail_report.h"

namespace railhead::op {

// Keeps a RailReport for each job that something is, or was, wrong with. One that is well, and
// always was, has none. Nothing is written that stands there already, to no report twice within ten
// seconds, to all of them ten times a second at most, and namespaces take turns; and no more
// than two thousand say that something is wrong, 500 in one namespace: where everything is, a few
// say so. The last 500 are for namespaces with less than 20. Those that were mended stay as long as
// their jobs, and count for nothing.
//
// Owners of a report that stands are changed only when none of them is there any more: it may take
// the right to delete it (OwnerReferencesPermissionEnforcement), which nobody has here. Where that
// is refused, the cluster removes the report with its owners, and another one is made.
//
// Rights needed: list, create and patch railreports; patch railreports/status.
class ReportWriter {
 public:
  // `api` must outlive the writer. `leads` is exact at any moment; `clock` is monotonic, and called
  // by several threads.
  ReportWriter(kube::Api* api, std::function<bool()> leads, std::function<absl::Time()> clock);

  // Works until ShutDown, in one thread.
  void Run();

  // What is below is thread-safe and brief.

  void ShutDown();
  void OnLead();  // another replica may have written meanwhile
  // What is to be known of a job.
  void Put(const std::string& job, const RailReport& report);
  // It is gone, and its report with it.
  void Forget(const std::string& job);

 private:
  // As it stands at the server, as far as this replica knows.
  struct Written {
    std::string owners;  // JSON
    std::string status;  // JSON
    bool is_clear = false;
    std::string job = {};  // whose it is; empty: that of one which this replica has not judged yet
  };
  struct Wanted {
    std::string space;
    std::string name;
    std::string owners;
    std::string status;
    bool is_clear = true;
    bool is_certain = true;
  };

  // Whose report it is from now on.
  void Claim(const std::string& job, const std::string& key);
  bool HasRoom(const std::string& space) const;

  // Whether they wrote.
  absl::StatusOr<bool> Load();
  absl::StatusOr<bool> Write(const std::string& job);
  // What is to be written, if anything.
  std::optional<Wanted> Next(const std::string& job);
  void Tell(const absl::Status& status);

  kube::Api* const api_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // jobs

  std::string trouble_;  // as told; used by Run's thread alone

  std::mutex mutex_;  // guards all below
  bool loaded_ = false;
  std::map<std::string, Wanted> wanted_;     // by job
  std::map<std::string, Written> written_;   // by namespace and name
  std::map<std::string, std::string> keys_;  // of jobs that have one in written_
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_REPORT_WRITER_H_
