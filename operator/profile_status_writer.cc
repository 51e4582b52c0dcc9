// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_status_writer.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "operator/profile_status.h"

namespace railhead::op {
namespace {

constexpr char kManager[] = "railhead-operator";
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
// The leader will have said it by then; if not, this replica may be the leader.
constexpr absl::Duration kOthersTurn = absl::Seconds(5);

}  // namespace

ProfileStatusWriter::ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                                         const ProfileFeed* feed, std::function<bool()> leads)
    : api_(api),
      profiles_(profiles),
      feed_(feed),
      leads_(std::move(leads)),
      queue_({absl::Milliseconds(500), absl::Seconds(30)}) {}

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
    const absl::Status done = Reconcile(*name);
    if (done.ok()) {
      queue_.Finish(*name);
      continue;
    }
    // Somebody else wrote to it meanwhile: the cache will tell what.
    if (!absl::IsAborted(done)) {
      spdlog::warn("RailProfile {}: {}", *name, std::string(done.message()));
    }
    queue_.Retry(*name);
  }
}

absl::Status ProfileStatusWriter::Reconcile(const std::string& name) {
  const kube::Cache<StoredProfile>::Value stored = profiles_->Get(name);
  const std::shared_ptr<const ClusterProfiles> all = feed_->Get();
  if (stored == nullptr || all == nullptr) return absl::OkStatus();
  const auto report = all->reports.find(name);
  // A report of another generation is about to be replaced, and then there is something new.
  if (report == all->reports.end() || report->second.generation != stored->generation) {
    return absl::OkStatus();
  }
  const std::optional<kube::Json> object = StatusToApply(*stored, report->second, absl::Now());
  if (!object) return absl::OkStatus();
  if (!leads_()) {
    queue_.AddAfter(name, kOthersTurn);
    return absl::OkStatus();
  }
  const kube::ObjectRef status = {std::string(kProfileVersion), "railprofiles", "", name, "status"};
  const absl::Status applied = kube::Apply(*api_, status, kManager, *object).status();
  return absl::IsNotFound(applied) ? absl::OkStatus() : applied;
}

}  // namespace railhead::op
