// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_status_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "operator/profile_status.h"

namespace railhead::op {
namespace {

constexpr char kManager[] = "railhead-operator";
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
// The leader will have said it by then; if not, this replica may be the leader.
constexpr absl::Duration kOthersTurn = absl::Seconds(5);
constexpr absl::Duration kBetweenWrites = absl::Seconds(10);
constexpr kube::BackoffOptions kBackoff = {absl::Milliseconds(500), absl::Seconds(30)};

}  // namespace

ProfileStatusWriter::ProfileStatusWriter(kube::Api* api, const kube::Cache<StoredProfile>* profiles,
                                         const ProfileFeed* feed, std::function<bool()> leads,
                                         std::function<absl::Time()> clock)
    : api_(api),
      profiles_(profiles),
      feed_(feed),
      leads_(std::move(leads)),
      clock_(std::move(clock)),
      queue_(kBackoff),
      random_(kube::SystemRandom()) {}

void ProfileStatusWriter::Wake() {
  const std::shared_ptr<const ClusterProfiles> all = feed_->Get();
  if (all == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(written_, [&](const auto& at) { return !all->reports.contains(at.first); });
  }
  for (const auto& [name, report] : all->reports) queue_.AddAfter(name, RestOf(name));
}

void ProfileStatusWriter::Run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { queue_.ShutDown(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> name = queue_.Take(kPatience);
    if (!name) continue;
    // There may have been news while it was being written to.
    if (const absl::Duration rest = RestOf(*name); rest > absl::ZeroDuration()) {
      queue_.AddAfter(*name, rest);
    } else {
      Reconcile(*name);
    }
    queue_.Finish(*name);
  }
}

absl::Duration ProfileStatusWriter::RestOf(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = written_.find(name);
  return at == written_.end() ? absl::ZeroDuration()
                              : std::max(absl::ZeroDuration(), at->second.rest_until - clock_());
}

void ProfileStatusWriter::Remember(const std::string& name, const absl::Status& applied) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Written& written = written_[name];
  if (applied.ok()) {
    written = {clock_() + kBetweenWrites, 0, ""};
    return;
  }
  const absl::Duration pause = kube::PauseAfter(kBackoff, ++written.failures, random_());
  written.rest_until = clock_() + pause;
  queue_.AddAfter(name, pause);
  if (absl::IsAborted(applied)) return;  // somebody else wrote to it: the cache will tell what
  const std::string trouble(applied.message());
  if (trouble != written.trouble) spdlog::warn("RailProfile {}: {}", name, trouble);
  written.trouble = trouble;
}

void ProfileStatusWriter::Reconcile(const std::string& name) {
  const kube::Cache<StoredProfile>::Value stored = profiles_->Get(name);
  const std::shared_ptr<const ClusterProfiles> all = feed_->Get();
  if (stored == nullptr || all == nullptr) return;
  const auto report = all->reports.find(name);
  // A report of another generation is about to be replaced, and then there is something new.
  if (report == all->reports.end() || report->second.generation != stored->generation) return;
  const std::optional<kube::Json> object = StatusToApply(*stored, report->second, absl::Now());
  if (!object) return;
  if (!leads_()) {
    queue_.AddAfter(name, kOthersTurn);
    return;
  }
  const kube::ObjectRef status = {std::string(kProfileVersion), "railprofiles", "", name, "status"};
  const absl::Status applied = kube::Apply(*api_, status, kManager, *object).status();
  if (!absl::IsNotFound(applied)) Remember(name, applied);
}

}  // namespace railhead::op
