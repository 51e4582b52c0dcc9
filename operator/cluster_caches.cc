// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_caches.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "operator/profiles/fabric_facts.h"
#include "operator/verdict/node_facts.h"

namespace railhead::op {
namespace {

using kube::Json;

kube::ReflectorOptions Watching(const std::string& api, const std::string& resource) {
  kube::ReflectorOptions options;
  options.collection = {api, resource, "", ""};
  return options;
}

kube::ReflectorOptions WatchingProfiles() {
  kube::ReflectorOptions options = Watching(std::string(kProfileVersion), "railprofiles");
  options.may_be_unknown = true;  // the cluster may have no such kind, and then no profiles
  return options;
}

}  // namespace

ClusterCaches::ClusterCaches(kube::Api* api, RdmaResources rdma, std::function<void()> on_change,
                             OnNode on_node)
    : on_change_(std::move(on_change)),
      on_node_(std::move(on_node)),
      profiles_(
          WatchingProfiles(), api,
          [](const Json& object) -> std::optional<StoredProfile> {
            return ReadStoredProfile(object);
          },
          ProfileCallbacks()),
      namespaces_(
          Watching("v1", "namespaces"), api,
          [](const Json& object) -> std::optional<Labels> { return LabelsOf(object); },
          NamespaceCallbacks()),
      nodes_(
          Watching("v1", "nodes"), api,
          [rdma = std::move(rdma)](const Json& object) -> std::optional<StoredNode> {
            return StoredNode{FabricLabels(LabelsOf(object)), verdict::NodeFactsOf(object, rdma)};
          },
          NodeCallbacks()) {}

kube::Informer<StoredProfile>::Callbacks ClusterCaches::ProfileCallbacks() {
  using Value = kube::Cache<StoredProfile>::Value;
  return {[this](const std::string&, const Value&, const Value&) { on_change_(); }, on_change_,
          [this](const absl::Status& end) { Tell("railprofiles", end); }};
}

kube::Informer<Labels>::Callbacks ClusterCaches::NamespaceCallbacks() {
  using Value = kube::Cache<Labels>::Value;
  return {[this](const std::string&, const Value&, const Value&) { on_change_(); }, on_change_,
          [this](const absl::Status& end) { Tell("namespaces", end); }};
}

kube::Informer<StoredNode>::Callbacks ClusterCaches::NodeCallbacks() {
  using Value = kube::Cache<StoredNode>::Value;
  return {[this](const std::string& name, const Value& before, const Value& after) {
            const std::optional<Labels> none;
            const std::optional<Labels>& was = before == nullptr ? none : before->fabric;
            const std::optional<Labels>& is = after == nullptr ? none : after->fabric;
            if (was != is) on_change_();
            on_node_(name, before, after);
          },
          on_change_, [this](const absl::Status& end) { Tell("nodes", end); }};
}

void ClusterCaches::Start() {
  profiles_.Start();
  namespaces_.Start();
  nodes_.Start();
}

void ClusterCaches::RequestStop() {
  profiles_.RequestStop();
  namespaces_.RequestStop();
  nodes_.RequestStop();
}

absl::Status ClusterCaches::Synced() const {
  std::vector<std::string> missing;
  for (const kube::InformerState& state : States()) {
    if (state.synced) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto why = trouble_.find(state.resource);
    missing.push_back(absl::StrCat("the first list of ", state.resource, " is not complete",
                                   why == trouble_.end() ? "" : ": ",
                                   why == trouble_.end() ? "" : why->second));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(missing, "; "));
}

std::vector<kube::InformerState> ClusterCaches::States() const {
  return {profiles_.State(), namespaces_.State(), nodes_.State()};
}

void ClusterCaches::Tell(const std::string& resource, const absl::Status& end) {
  if (absl::IsCancelled(end)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string& last = trouble_[resource];
  const std::string now(end.message());
  if (now != last && !end.ok()) spdlog::warn("watching {}: {}", resource, now);
  last = now;
}

}  // namespace railhead::op
