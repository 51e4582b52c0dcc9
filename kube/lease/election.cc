// SPDX-License-Identifier: Apache-2.0
#include "kube/lease/election.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

// Spreads the requests of replicas that started together.
constexpr double kJitter = 0.2;
// The holder of a lease that is gone.
constexpr char kSomebody[] = "unknown, before the lease was deleted";

absl::Status NoLease(absl::string_view field, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("lease: ", field, " is not ", what));
}

// A member of the spec that may be absent or null; an error when it is something else than a
// string.
absl::Status ReadString(const Json& spec, absl::string_view key, std::string& to) {
  const Json* value = Find(spec, key);
  if (value == nullptr || value->is_null()) return absl::OkStatus();
  if (!value->is_string()) return NoLease(absl::StrCat("spec.", key), "a string");
  to = value->get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadCount(const Json& spec, absl::string_view key, int& to) {
  const Json* value = Find(spec, key);
  if (value == nullptr || value->is_null()) return absl::OkStatus();
  const bool fits = value->is_number_integer() && value->get<int64_t>() >= 0 &&
                    value->get<int64_t>() < std::numeric_limits<int>::max();
  if (!fits) return NoLease(absl::StrCat("spec.", key), "a count");
  to = static_cast<int>(value->get<int64_t>());
  return absl::OkStatus();
}

std::string MicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<LeaseView> ReadLease(const Json& lease) {
  LeaseView view;
  view.version = StringAt(lease, {"metadata", "resourceVersion"});
  if (view.version.empty()) return NoLease("metadata.resourceVersion", "there");
  const Json* spec = Find(lease, "spec");
  if (spec == nullptr || spec->is_null()) return view;
  if (!spec->is_object()) return NoLease("spec", "an object");
  int seconds = 0;
  for (const absl::Status& read : {ReadString(*spec, "holderIdentity", view.holder),
                                   ReadString(*spec, "acquireTime", view.acquired),
                                   ReadCount(*spec, "leaseDurationSeconds", seconds),
                                   ReadCount(*spec, "leaseTransitions", view.transitions)}) {
    if (!read.ok()) return read;
  }
  view.promised = absl::Seconds(seconds);
  return view;
}

Json WriteLease(const LeaseView& lease, absl::string_view space, absl::string_view name,
                absl::Time wall) {
  Json object = {{"apiVersion", "coordination.k8s.io/v1"},
                 {"kind", "Lease"},
                 {"metadata", {{"name", std::string(name)}, {"namespace", std::string(space)}}},
                 {"spec",
                  {{"holderIdentity", lease.holder},
                   {"leaseDurationSeconds", absl::ToInt64Seconds(lease.promised)},
                   {"acquireTime", lease.acquired.empty() ? MicroTime(wall) : lease.acquired},
                   {"renewTime", MicroTime(wall)},
                   {"leaseTransitions", lease.transitions}}}};
  if (!lease.version.empty()) object["metadata"]["resourceVersion"] = lease.version;
  return object;
}

absl::Status Election::Check(const ElectionOptions& options) {
  if (options.identity.empty()) return absl::InvalidArgumentError("election: no identity");
  const bool ordered = absl::ZeroDuration() < options.retry &&
                       options.retry < options.renew_deadline &&
                       options.renew_deadline < options.lease;
  if (!ordered || absl::Trunc(options.lease, absl::Seconds(1)) != options.lease) {
    return absl::InvalidArgumentError(absl::StrCat(
        "election: lease ", absl::FormatDuration(options.lease), ", renew deadline ",
        absl::FormatDuration(options.renew_deadline), ", retry ",
        absl::FormatDuration(options.retry),
        ": the lease must be whole seconds and longer than the renew deadline, which must be "
        "longer than the retry interval"));
  }
  return absl::OkStatus();
}

Election::Election(ElectionOptions options, Random random)
    : options_(std::move(options)), random_(std::move(random)) {}

Election::Step Election::Next(absl::Time now) {
  Step step{};
  if (now < next_) {
    step.kind = Step::Kind::kWait;
    step.until = Leads(now) ? std::min(next_, leads_until_) : next_;
    return step;
  }
  step.kind = knows_ ? Step::Kind::kWrite : Step::Kind::kRead;
  // A leader's request must not keep it from noticing that its time is up, and one that hangs must
  // leave time for another.
  step.time_allowed = options_.renew_deadline / 2;
  if (Leads(now)) step.time_allowed = std::min(step.time_allowed, leads_until_ - now);
  if (knows_) step.write = Mine();
  return step;
}

void Election::OnRead(const absl::StatusOr<LeaseView>& lease, absl::Time /*sent*/, absl::Time now) {
  trouble_ = lease.status();
  knows_ = false;
  if (absl::IsNotFound(lease.status())) {
    trouble_ = absl::OkStatus();
    // The holder of a deleted lease may still lead. Wait for its expiry, unless this replica leads
    // or never saw a lease.
    LeaseView absent = seen_;
    absent.version.clear();
    if (!Leads(now) && !seen_.version.empty()) absent.holder = kSomebody;
    Observe(absent, now);
  } else if (lease.ok()) {
    Observe(*lease, now);
  } else {
    TryAgain(now);
    return;
  }
  if (MayTake(now)) {
    knows_ = true;
    return;
  }
  leads_until_ = absl::InfinitePast();  // another one holds it
  TryAgain(now);
  next_ = std::min(next_, FreeAt());
}

void Election::OnWritten(const absl::StatusOr<LeaseView>& lease, absl::Time sent, absl::Time now) {
  knows_ = lease.ok();
  if (lease.ok()) {
    trouble_ = absl::OkStatus();
    Observe(*lease, now);
    leads_until_ = sent + options_.renew_deadline;
    TryAgain(now);
    return;
  }
  const bool lost_a_race = absl::IsAborted(lease.status()) ||
                           absl::IsAlreadyExists(lease.status()) ||
                           absl::IsNotFound(lease.status());
  trouble_ = lost_a_race ? absl::OkStatus() : lease.status();
  // After a lost race, read at once; after another error, the write may have succeeded.
  if (!lost_a_race) TryAgain(now);
}

std::optional<LeaseView> Election::Release(absl::Time now) {
  const bool led = Leads(now) && knows_;
  leads_until_ = absl::InfinitePast();
  if (!led) return std::nullopt;
  LeaseView free = seen_;
  free.holder.clear();
  free.promised = absl::Seconds(1);  // the API takes no zero
  return free;
}

void Election::Observe(const LeaseView& lease, absl::Time now) {
  // Any write counts, even one that is not the holder's: too late is safe, too early is not.
  if (lease.version != seen_.version) changed_ = now;
  seen_ = lease;
}

void Election::TryAgain(absl::Time now) {
  next_ = now + options_.retry * (1 + kJitter * random_());
}

LeaseView Election::Mine() const {
  LeaseView mine = seen_;
  mine.promised = options_.lease;
  if (seen_.holder != options_.identity) {
    mine.holder = options_.identity;
    mine.acquired.clear();
    if (!seen_.version.empty()) ++mine.transitions;
  }
  return mine;
}

bool Election::MayTake(absl::Time now) const {
  return seen_.holder.empty() || seen_.holder == options_.identity || now >= FreeAt();
}

absl::Time Election::FreeAt() const {
  return changed_ + (seen_.promised > absl::ZeroDuration() ? seen_.promised : options_.lease);
}

}  // namespace railhead::kube
