// SPDX-License-Identifier: Apache-2.0
#include "operator/control/profile_status_writer.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "operator/profiles/profile_status.h"

namespace railhead::op {
namespace {

constexpr char kManager[] = "railhead-operator";
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
// The leader should have written the status; if not, this replica may be the leader.
constexpr absl::Duration kOthersTurn = absl::Seconds(5);
constexpr absl::Duration kBetweenWrites = absl::Seconds(10);
constexpr kube::BackoffOptions kWriteBackoff = {absl::Milliseconds(500), absl::Seconds(30)};

}  // namespace

ProfileStatusWriter::ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                                         const ProfileFeed* feed, std::function<bool()> leads,
                                         std::function<absl::Time()> clock)
    : api_(api),
      profiles_(profiles),
      feed_(feed),
      leads_(std::move(leads)),
      queue_(kWriteBackoff, kube::SystemRandom(), std::move(clock)) {}

void ProfileStatusWriter::Wake() {
  const std::shared_ptr<const ClusterProfiles> all = feed_->Get();
  if (all == nullptr) return;
  for (const auto& [name, report] : all->reports) queue_.Add(name);
}

void ProfileStatusWriter::Run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { queue_.ShutDown(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> name = queue_.Take(kPatience);
    if (!name) continue;
    switch (Reconcile(*name)) {
      case Outcome::kNothingToDo:
        trouble_.erase(*name);
        queue_.Finish(*name);
        break;
      case Outcome::kWritten:
        trouble_.erase(*name);
        queue_.Rest(*name, kBetweenWrites);
        break;
      case Outcome::kFailed:
        queue_.Retry(*name);
        break;
    }
  }
}

ProfileStatusWriter::Outcome ProfileStatusWriter::Reconcile(const std::string& name) {
  const kube::Cache<StoredProfile>::Value stored = profiles_->Get(name);
  const std::shared_ptr<const ClusterProfiles> all = feed_->Get();
  if (stored == nullptr || all == nullptr) return Outcome::kNothingToDo;
  const auto report = all->reports.find(name);
  // A report of another generation is about to be replaced, and then there is something new.
  if (report == all->reports.end() || report->second.generation != stored->generation) {
    return Outcome::kNothingToDo;
  }
  const std::optional<kube::Json> object = StatusToApply(*stored, report->second, absl::Now());
  if (!object) return Outcome::kNothingToDo;
  if (!leads_()) {
    queue_.AddAfter(name, kOthersTurn);
    return Outcome::kNothingToDo;
  }
  const kube::ObjectRef status = {std::string(kProfileVersion), "railprofiles", "", name, "status"};
  const absl::Status applied = kube::Apply(*api_, status, kManager, *object).status();
  if (absl::IsNotFound(applied)) return Outcome::kNothingToDo;  // it is gone
  if (applied.ok()) return Outcome::kWritten;
  Tell(name, applied);
  return Outcome::kFailed;
}

void ProfileStatusWriter::Tell(const std::string& name, const absl::Status& applied) {
  if (absl::IsAborted(applied)) return;  // changed by another client: the watch updates the cache
  const std::string trouble(applied.message());
  std::string& told = trouble_[name];
  if (trouble != told) spdlog::warn("RailProfile {}: {}", name, trouble);
  told = trouble;
}

}  // namespace railhead::op
