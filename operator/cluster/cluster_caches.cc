// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/cluster_caches.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::op {
namespace {

using kube::Json;

using Collections = std::vector<kube::ReflectorOptions>;

Collections Watching(const std::string& api, const std::string& resource) {
  return {{.collection = {api, resource, "", ""}}};
}

// The cluster may have no such kind, and then no such objects.
Collections WatchingOurs(const std::string& api, const std::string& resource) {
  return {{.collection = {api, resource, "", ""}, .may_be_unknown = true}};
}

// A namespace that is deleted takes with it our right to look there.
Collections WatchingPods(const std::set<std::string>& namespaces) {
  if (namespaces.empty()) return Watching("v1", "pods");
  Collections collections;
  for (const std::string& space : namespaces) {
    collections.push_back({.collection = {"v1", "pods", space, ""}, .may_be_forbidden = true});
  }
  return collections;
}

}  // namespace

ClusterCaches::ClusterCaches(const ClusterCachesOptions& options, kube::Api* api)
    : watches_pods_(options.verdicts || options.gangs),
      watches_topologies_(options.topology),
      pod_reader_(
          {options.rdma_resources, options.excluded_namespaces, options.verdicts, options.gangs}),
      profiles_(WatchingOurs(std::string(kProfileVersion), "railprofiles"), api,
                [](const Json& object) -> std::optional<StoredProfile> {
                  return ReadStoredProfile(object);
                }),
      namespaces_(Watching("v1", "namespaces"), api,
                  [](const Json& object) -> std::optional<Labels> { return LabelsOf(object); }),
      nodes_(Watching("v1", "nodes"), api,
             [this, reading = NodeReading{options.rdma_resources, options.gangs, options.topology}](
                 const Json& object) {
               std::optional<StoredNode> node = ReadNode(object, reading);
               // Machines are alike.
               node->facts.rails = rails_.Share(node->facts.rails);
               node->labels = node->labels.SharedIn(labels_);
               return node;
             }),
      pods_(WatchingPods(options.namespaces), api,
            [this](const Json& object) {
              const auto before = pods_.cache().Get(kube::KeyOf(object));
              return pod_reader_.Read(object, before.get());
            }),
      topologies_(WatchingOurs(topology::kTopologyVersion, topology::kTopologyResource), api,
                  topology::ReadStoredTopology) {}

void ClusterCaches::Start() {
  ForEachKind(*this, [](auto& kind) { kind.Start(); });
}

void ClusterCaches::RequestStop() {
  ForEachKind(*this, [](auto& kind) { kind.RequestStop(); });
}

void ClusterCaches::Join() {
  ForEachKind(*this, [](auto& kind) { kind.Join(); });
}

absl::Status ClusterCaches::Synced() const {
  std::vector<std::string> missing;
  const auto check = [&missing](const auto& kind) {
    if (kind.Synced()) return;
    const std::string why = kind.Trouble();
    missing.push_back(absl::StrCat("the first list of ", kind.State().resource, " is not complete",
                                   why.empty() ? "" : ": ", why));
  };
  check(profiles_);
  check(namespaces_);
  check(nodes_);
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(missing, "; "));
}

std::vector<kube::InformerState> ClusterCaches::States() const {
  std::vector<kube::InformerState> states;
  ForEachKind(*this, [&states](const auto& kind) { states.push_back(kind.State()); });
  return states;
}

}  // namespace railhead::op
