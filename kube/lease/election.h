// SPDX-License-Identifier: Apache-2.0
//
// Leader election: one of several replicas leads by renewing a Lease (coordination.k8s.io/v1).
// Pure: the caller passes times and results of reads and writes. Used by LeaderElector.
//
// At most one replica leads. A replica takes the lease only after, by its own clock, it saw no
// write for the duration that the holder announced (15 s). The holder stops leading after 10 s,
// counted from before it sent its last write, which is earlier than any replica can see that write.
// Clocks of machines are never compared; only their rates must match: with 15 and 10 s, within a
// third.
#ifndef RAILHEAD_KUBE_LEASE_ELECTION_H_
#define RAILHEAD_KUBE_LEASE_ELECTION_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/json.h"

namespace railhead::kube {

struct ElectionOptions {
  std::string identity;                      // of this process: unique for every start
  absl::Duration lease = absl::Seconds(15);  // whole seconds
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry = absl::Seconds(2);
};

// The fields of a Lease that matter.
struct LeaseView {
  std::string version;  // metadata.resourceVersion; empty if there is no lease
  std::string holder;   // empty if released
  absl::Duration promised = absl::ZeroDuration();  // announced lease duration; zero if absent
  std::string acquired;                            // acquireTime, unparsed
  int transitions = 0;
};

// Reads a Lease. DataLoss names the field that is wrong.
absl::StatusOr<LeaseView> ReadLease(const Json& lease);

// State of one replica. Not thread-safe. All times are of one monotonic clock.
class Election {
 public:
  // Returns InvalidArgument unless identity is set, 0 < retry < renew_deadline < lease, and lease
  // is in whole seconds.
  static absl::Status Check(const ElectionOptions& options);

  // `options` must have passed Check. `random` spreads the replicas' attempts.
  Election(ElectionOptions options, Random random);

  // The next action. Perform a read or write at once and pass its outcome to OnRead or OnWritten
  // before calling Next again.
  struct Step {
    enum class Kind { kWait, kRead, kWrite };
    Kind kind;
    absl::Time until;             // kWait: call Next again then
    absl::Duration time_allowed;  // kRead, kWrite: timeout; later responses are useless
    LeaseView write;              // kWrite: value to write; its version is the one to replace
  };
  Step Next(absl::Time now);

  // `sent` is the time before the request was sent.
  void OnRead(const absl::StatusOr<LeaseView>& lease, absl::Time sent, absl::Time now);
  void OnWritten(const absl::StatusOr<LeaseView>& lease, absl::Time sent, absl::Time now);

  // Returns true if this replica leads at `now`; leads_until() is the end without further writes.
  bool Leads(absl::Time now) const { return now < leads_until_; }
  absl::Time leads_until() const { return leads_until_; }

  // Stops leading. If this replica led, returns the write that lets another replica lead at once.
  std::optional<LeaseView> Release(absl::Time now);

  // The last known holder of the lease; empty if released.
  const std::string& holder() const { return seen_.holder; }
  // Error of the last read or write; OK if it succeeded or lost a race.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Observe(const LeaseView& lease, absl::Time now);
  void TryAgain(absl::Time now);
  LeaseView Mine() const;
  bool MayTake(absl::Time now) const;
  absl::Time FreeAt() const;  // expiry of the holder's lease unless it renews

  const ElectionOptions options_;
  const Random random_;

  bool knows_ = false;  // seen_ is the server's latest response, and can be replaced
  LeaseView seen_;
  absl::Time changed_ = absl::InfinitePast();  // time at which seen_ last changed
  absl::Time next_ = absl::InfinitePast();     // earliest time of the next attempt
  absl::Time leads_until_ = absl::InfinitePast();
  absl::Status trouble_;
};

// Returns the merge patch, or for a new lease the object, that writes `lease`. `wall` is the time
// shown to people.
Json WriteLease(const LeaseView& lease, absl::string_view space, absl::string_view name,
                absl::Time wall);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LEASE_ELECTION_H_
