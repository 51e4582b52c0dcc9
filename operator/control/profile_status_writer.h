// SPDX-License-Identifier: Apache-2.0
//
// Writes the status of each RailProfile when it changes, on the leader. Used by the controllers.
#ifndef RAILHEAD_OPERATOR_CONTROL_PROFILE_STATUS_WRITER_H_
#define RAILHEAD_OPERATOR_CONTROL_PROFILE_STATUS_WRITER_H_

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/queue/work_queue.h"
#include "operator/control/profile_feed.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// A write applies only to the version of the profile that it was computed from. Another operator in
// the cluster may compute a different status, and each write triggers the other operator. Therefore
// a profile is written at most once in a few seconds, and changes do not shorten the backoff.
//
// Rights needed: patch railprofiles/status.
class ProfileStatusWriter {
 public:
  // All arguments must outlive the writer. `leads` must be exact at any time. `clock` is monotonic
  // and called concurrently.
  ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                      const ProfileFeed* feed, std::function<bool()> leads,
                      std::function<absl::Time()> clock);

  // Call after a change, or when this replica becomes the leader. Thread-safe; returns quickly.
  void Wake();

  // Runs until `stop`.
  void Run(const std::stop_token& stop);

 private:
  // Result of reconciling a profile.
  enum class Outcome { kNothingToDo, kWritten, kFailed };

  Outcome Reconcile(const std::string& name);
  // Logs the result if it differs from the last one.
  void Tell(const std::string& name, const absl::Status& applied);

  kube::Api* const api_;
  const kube::Cache<StoredProfile>* const profiles_;
  const ProfileFeed* const feed_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // names of profiles

  std::map<std::string, std::string> trouble_;  // as logged, by profile; used by Run's thread only
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_PROFILE_STATUS_WRITER_H_
