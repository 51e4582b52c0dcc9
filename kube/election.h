// SPDX-License-Identifier: Apache-2.0
//
// Which of several replicas leads, by a Lease (coordination.k8s.io/v1) that the leader keeps
// writing. Pure: a replica's clock and what it read and wrote come from outside.
//
// Why there are never two: a replica takes the lease only after it has seen, by its own clock, that
// nobody wrote it for the time that its holder promised (15 s). The holder stops leading earlier
// (10 s) than that, counted from before it sent its last write, which is before anybody could see
// that write. Clocks of different machines are never compared; they need only run equally fast:
// with 15 and 10 s, to within a third.
#ifndef RAILHEAD_KUBE_ELECTION_H_
#define RAILHEAD_KUBE_ELECTION_H_

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
  std::string identity;                      // of this process: another one after every start
  absl::Duration lease = absl::Seconds(15);  // whole seconds
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry = absl::Seconds(2);
};

// What counts of a Lease.
struct LeaseView {
  std::string version;  // metadata.resourceVersion; empty when there is no lease yet
  std::string holder;   // empty when it was released
  absl::Duration promised = absl::ZeroDuration();  // zero when it says nothing
  std::string acquired;                            // acquireTime, as it is written there
  int transitions = 0;
};

// DataLoss names the field of an object that is no Lease.
absl::StatusOr<LeaseView> ReadLease(const Json& lease);

// One replica. Not thread-safe. All times are one monotonic clock's.
class Election {
 public:
  // InvalidArgument unless there is an identity, 0 < retry < renew_deadline < lease, and the lease
  // is whole seconds.
  static absl::Status Check(const ElectionOptions& options);

  // `options` passed Check. `random` spreads the replicas' tries.
  Election(ElectionOptions options, Random random);

  // What is to be done next. A read or a write is done at once and its outcome told, whatever it
  // is, before Next is asked again.
  struct Step {
    enum class Kind { kWait, kRead, kWrite };
    Kind kind;
    absl::Time until;             // kWait: ask again then
    absl::Duration time_allowed;  // kRead, kWrite: later answers are of no use
    LeaseView write;              // kWrite: what to write; its version is the one to replace
  };
  Step Next(absl::Time now);

  // `sent` is the time before the request was sent.
  void OnRead(const absl::StatusOr<LeaseView>& lease, absl::Time sent, absl::Time now);
  void OnWritten(const absl::StatusOr<LeaseView>& lease, absl::Time sent, absl::Time now);

  // Whether this replica leads at `now`, and until when if nothing more is written.
  bool Leads(absl::Time now) const { return now < leads_until_; }
  absl::Time leads_until() const { return leads_until_; }

  // Stops leading, and returns the write that lets another one lead at once, if this one led.
  std::optional<LeaseView> Release(absl::Time now);

  // Who holds the lease as far as is known; empty when nobody does.
  const std::string& holder() const { return seen_.holder; }
  // Why the last read or write failed; OK when it did not, or lost a race.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Observe(const LeaseView& lease, absl::Time now);
  void TryAgain(absl::Time now);
  LeaseView Mine() const;
  bool MayTake(absl::Time now) const;
  absl::Time FreeAt() const;  // when what the holder promised is over, unless it writes again

  const ElectionOptions options_;
  const Random random_;

  bool knows_ = false;  // seen_ is what the server last told us, and can be replaced
  LeaseView seen_;
  absl::Time changed_ = absl::InfinitePast();  // when seen_ was found to differ from before
  absl::Time next_ = absl::InfinitePast();     // not to be tried before
  absl::Time leads_until_ = absl::InfinitePast();
  absl::Status trouble_;
};

// The merge patch, or for a lease that does not exist the object, that writes `lease`. `wall` is
// what people see.
Json WriteLease(const LeaseView& lease, absl::string_view space, absl::string_view name,
                absl::Time wall);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_ELECTION_H_
