// SPDX-License-Identifier: Apache-2.0
#include "operator/control/profile_feed.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "operator/profiles/fabric_facts.h"

namespace railhead::op {
namespace {

// Time during which changes are collected. A list of a thousand nodes is then one change, and a pod
// created right after its profile still finds it.
constexpr std::chrono::milliseconds kSettleTime(100);

// Logs what has changed.
void Tell(const ClusterProfiles* before, const ClusterProfiles& after) {
  for (const auto& [name, report] : after.reports) {
    const ProfileReport* old = nullptr;
    if (before != nullptr) {
      const auto found = before->reports.find(name);
      if (found != before->reports.end()) old = &found->second;
    }
    if (old != nullptr && *old == report) continue;
    if (!report.refusal.empty()) {
      spdlog::error("RailProfile {}: rejected: {}", name, report.refusal);
    } else if (!report.conflict.empty()) {
      spdlog::error("RailProfile {}: {}", name, report.conflict);
    } else {
      spdlog::info("RailProfile {}: generation {} is in use", name, report.generation);
    }
  }
}

}  // namespace

ProfileFeed::ProfileFeed(ClusterCaches* caches, std::function<void()> on_new)
    : caches_(caches), on_new_(std::move(on_new)) {
  const auto on_change = [this](const auto&, const auto&, const auto&) { Wake(); };
  const auto on_synced = [this] { Wake(); };
  caches->profiles().Subscribe(on_change, on_synced);
  caches->namespaces().Subscribe(on_change, on_synced);
  caches->nodes().Subscribe(
      [this](const std::string&, const auto& before, const auto& after) {
        const std::optional<Labels> was =
            before == nullptr ? std::nullopt : FabricLabels(before->labels);
        const std::optional<Labels> is =
            after == nullptr ? std::nullopt : FabricLabels(after->labels);
        if (was != is) Wake();
      },
      on_synced);
}

void ProfileFeed::Wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    dirty_ = true;
  }
  woken_.notify_one();
}

void ProfileFeed::Run(const std::stop_token& stop) {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!woken_.wait(lock, stop, [this] { return dirty_; })) return;
      woken_.wait_for(lock, stop, kSettleTime, [] { return false; });
      if (stop.stop_requested()) return;
      dirty_ = false;
    }
    if (caches_->Synced().ok()) Rebuild();
  }
}

void ProfileFeed::Rebuild() {
  auto next = std::make_shared<const ClusterProfiles>(BuildClusterProfiles(
      caches_->profiles().cache(), caches_->namespaces().cache(), caches_->nodes().cache()));
  std::shared_ptr<const ClusterProfiles> before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = std::exchange(current_, next);
  }
  if (before == nullptr) {
    spdlog::info("loaded {} RailProfiles, {} namespaces, {} nodes with rails", next->reports.size(),
                 next->set->namespaces.size(), next->set->facts.nodes);
  }
  Tell(before.get(), *next);
  on_new_();
}

std::shared_ptr<const ClusterProfiles> ProfileFeed::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

}  // namespace railhead::op
