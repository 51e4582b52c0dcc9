// SPDX-License-Identifier: Apache-2.0
#include "kube/lease/leader_elector.h"

#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/monotonic.h"

namespace railhead::kube {
namespace {

// Time limit for releasing the lease at exit, so that another replica can lead at once.
constexpr absl::Duration kReleaseTime = absl::Seconds(2);

absl::StatusOr<LeaseView> AsLease(const absl::StatusOr<Json>& answer) {
  if (!answer.ok()) return answer.status();
  return ReadLease(*answer);
}

void WaitUntil(absl::Time time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock<std::mutex> lock(mutex);
  condition.wait_for(lock, stop, absl::ToChronoNanoseconds(time - MonotonicNow()),
                     [] { return false; });
}

}  // namespace

LeaderElector::LeaderElector(ElectionOptions options, ObjectRef lease, Api* api,
                             ElectorCallbacks callbacks, Json labels)
    : lease_(std::move(lease)),
      api_(api),
      callbacks_(std::move(callbacks)),
      labels_(std::move(labels)),
      election_(std::move(options), SystemRandom()),
      leads_until_nanos_(std::numeric_limits<int64_t>::min()) {}

bool LeaderElector::Leads() const {
  return absl::ToUnixNanos(MonotonicNow()) < leads_until_nanos_.load();
}

void LeaderElector::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Time sent = MonotonicNow();
    Publish(sent);
    const Election::Step step = election_.Next(sent);
    if (step.kind == Election::Step::Kind::kWait) {
      WaitUntil(step.until, stop);
      continue;
    }
    if (step.kind == Election::Step::Kind::kRead) {
      const absl::StatusOr<LeaseView> lease = Read(step.time_allowed);
      election_.OnRead(lease, sent, MonotonicNow());
    } else {
      const absl::StatusOr<LeaseView> lease = Write(step.write, step.time_allowed);
      election_.OnWritten(lease, sent, MonotonicNow());
    }
    Tell(election_.trouble());
  }
  const absl::Time now = MonotonicNow();
  const std::optional<LeaseView> release = election_.Release(now);
  Publish(now);  // stop leading before another replica can start
  if (release) Tell(Write(*release, kReleaseTime).status());
}

absl::StatusOr<LeaseView> LeaderElector::Read(absl::Duration time_allowed) {
  ApiRequest request{"GET", lease_.Path(), "", "", absl::StrCat("get ", lease_.ToString())};
  request.timeout = time_allowed;
  return AsLease(api_->Call(request));
}

absl::StatusOr<LeaseView> LeaderElector::Write(const LeaseView& lease,
                                               absl::Duration time_allowed) {
  Json object = WriteLease(lease, lease_.space, lease_.name, absl::Now());
  ApiRequest request;
  if (lease.version.empty()) {
    object["metadata"]["labels"] = labels_;
    ObjectRef collection = lease_;
    collection.name.clear();
    request = {"POST", collection.Path(), "application/json", DumpJson(object),
               absl::StrCat("create ", lease_.ToString())};
  } else {
    request = {"PATCH", lease_.Path(), "application/merge-patch+json", DumpJson(object),
               absl::StrCat("patch ", lease_.ToString())};
  }
  request.timeout = time_allowed;
  return AsLease(api_->Call(request));
}

void LeaderElector::Publish(absl::Time now) {
  leads_until_nanos_.store(absl::ToUnixNanos(election_.leads_until()));
  const bool leads = election_.Leads(now);
  if (leads == leading_) return;
  leading_ = leads;
  leads ? callbacks_.on_started() : callbacks_.on_stopped();
}

void LeaderElector::Tell(const absl::Status& trouble) {
  if (!trouble.ok() || troubled_) callbacks_.on_trouble(trouble);
  troubled_ = !trouble.ok();
}

}  // namespace railhead::kube
