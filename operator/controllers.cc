// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers.h"

namespace railhead::op {

Controllers::Controllers(kube::Api* api)
    : feed_(&caches_, [] {}), caches_(api, [this] { feed_.Wake(); }) {}

Controllers::~Controllers() = default;  // jthreads are told to stop

void Controllers::Start() {
  feed_thread_ = std::jthread([this](const std::stop_token& stop) { feed_.Run(stop); });
  caches_.Start();
}

void Controllers::Stop() {
  caches_.RequestStop();
  feed_thread_.request_stop();
}

std::shared_ptr<const ProfileSet> Controllers::Profiles() const {
  const std::shared_ptr<const ClusterProfiles> all = feed_.Get();
  return all == nullptr ? nullptr : all->set;
}

absl::Status Controllers::Synced() const {
  if (absl::Status synced = caches_.Synced(); !synced.ok()) return synced;
  if (feed_.Get() == nullptr) return absl::UnavailableError("profiles are just being read");
  return absl::OkStatus();
}

void Controllers::Report(Metrics& metrics) const {
  for (const kube::InformerState& state : caches_.States()) metrics.SetCache(state);
  if (const std::shared_ptr<const ClusterProfiles> all = feed_.Get(); all != nullptr) {
    metrics.SetProfiles(all->set->profiles.size(), all->reports.size() - all->set->profiles.size());
  }
}

}  // namespace railhead::op
