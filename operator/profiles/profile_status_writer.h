// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_WRITER_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_WRITER_H_

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/work_queue.h"
#include "operator/profiles/profile_feed.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// The replica that leads tells on each RailProfile what became of it, whenever that changes. What
// it writes applies to exactly the version of the profile that it was decided on. Another operator
// of the cluster may see things in another way, and each write is news for both: nothing is written
// to a profile twice within a few seconds, nor tried again before its time, whatever news there is.
//
// Rights needed: patch railprofiles/status.
class ProfileStatusWriter {
 public:
  // All must outlive the writer. `leads` is exact at any moment; `clock` is monotonic, and called
  // by several threads.
  ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                      const ProfileFeed* feed, std::function<bool()> leads,
                      std::function<absl::Time()> clock);

  // There is something new, or this replica has begun to lead. Thread-safe, brief.
  void Wake();

  // Works until `stop`.
  void Run(const std::stop_token& stop);

 private:
  // What came of a look at a profile.
  enum class Outcome { kNothingToDo, kWritten, kFailed };

  Outcome Reconcile(const std::string& name);
  // Logs what is new of it.
  void Tell(const std::string& name, const absl::Status& applied);

  kube::Api* const api_;
  const kube::Cache<StoredProfile>* const profiles_;
  const ProfileFeed* const feed_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // names of profiles

  std::map<std::string, std::string> trouble_;  // as told, by name; used by Run's thread alone
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_WRITER_H_
