// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILE_STATUS_WRITER_H_
#define RAILHEAD_OPERATOR_PROFILE_STATUS_WRITER_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/work_queue.h"
#include "operator/profile_feed.h"
#include "operator/stored_profile.h"

namespace railhead::op {

// The replica that leads tells on each RailProfile what became of it, whenever that changes. What
// it writes applies to exactly the version of the profile that it was decided on.
//
// Rights needed: patch railprofiles/status.
class ProfileStatusWriter {
 public:
  // All must outlive the writer. `leads` is exact at any moment.
  ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                      const ProfileFeed* feed, std::function<bool()> leads);

  // There is something new, or this replica has begun to lead. Thread-safe, brief.
  void Wake();

  // Works until `stop`.
  void Run(const std::stop_token& stop);

 private:
  absl::Status Reconcile(const std::string& name);

  kube::Api* const api_;
  const kube::Cache<StoredProfile>* const profiles_;
  const ProfileFeed* const feed_;
  const std::function<bool()> leads_;
  kube::WorkQueue queue_;  // names of profiles
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILE_STATUS_WRITER_H_
