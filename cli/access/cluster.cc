// SPDX-License-Identifier: Apache-2.0
#include "cli/access/cluster.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "cli/access/release.h"
#include "kube/auth/in_cluster.h"
#include "kube/auth/kubeconfig.h"
#include "kube/json.h"
#include "kube/rest_client.h"
#include "operator/config/config.h"
#include "operator/objects/rdma_resources.h"
#include "placement/topology/stored_topology.h"

namespace railhead::cli {
namespace {

absl::Status List(kube::Api& api, const kube::ObjectRef& all, const char* kind,
                  std::vector<kube::Json>& into) {
  return ForEachWithKind(api, all, kind, [&into](kube::Json object) {
    into.push_back(std::move(object));
    return absl::OkStatus();
  });
}

std::vector<std::string> KubeconfigPaths(const ClusterFlags& flags) {
  if (!flags.kubeconfig.empty()) return {flags.kubeconfig};
  std::vector<std::string> paths =
      absl::StrSplit(kube::ProcessEnvironment("KUBECONFIG"), ':', absl::SkipEmpty());
  const std::string home = kube::ProcessEnvironment("HOME");
  if (paths.empty() && !home.empty()) paths.push_back(home + "/.kube/config");
  return paths;
}

absl::StatusOr<kube::InCluster> FindCluster(const ClusterFlags& flags) {
  const std::vector<std::string> paths = KubeconfigPaths(flags);
  const bool says_nothing = flags.kubeconfig.empty() && flags.context.empty() &&
                            std::none_of(paths.begin(), paths.end(), [](const std::string& path) {
                              return std::filesystem::exists(path);
                            });
  if (says_nothing && !kube::ProcessEnvironment("KUBERNETES_SERVICE_HOST").empty()) {
    return kube::InClusterConfig("/", kube::ProcessEnvironment);
  }
  absl::StatusOr<kube::Kubeconfig> config = kube::LoadKubeconfig(paths, flags.context);
  if (!config.ok()) return config.status();
  return kube::InCluster{std::move(config->client), std::move(config->space)};
}

}  // namespace

absl::StatusOr<ReachedCluster> ReachCluster(const ClusterFlags& flags) {
  absl::StatusOr<kube::InCluster> config = FindCluster(flags);
  if (!config.ok()) return config.status();
  std::signal(SIGPIPE, SIG_IGN);  // required by the client
  auto clock = std::make_unique<kube::ServerClock>();
  config->client.server_clock = clock.get();
  auto api = std::make_unique<kube::RestClient>(std::move(config->client));
  return ReachedCluster{std::move(clock), std::move(api), std::move(config->space)};
}

absl::Status ForEachWithKind(kube::Api& api, const kube::ObjectRef& all, const char* kind,
                             const std::function<absl::Status(kube::Json object)>& visit) {
  return kube::ForEach(api, all, [&](const kube::Json& object) {
    kube::Json with_kind = object;
    with_kind["apiVersion"] = all.api;
    with_kind["kind"] = kind;
    return visit(std::move(with_kind));
  });
}

absl::StatusOr<op::RdmaResources> AskRdmaResources(kube::Api& api) {
  op::RdmaResources resources;
  const auto read = [&](const kube::Json& object) {
    if (auto rdma = op::ReadRdmaResources(object)) resources = *std::move(rdma);
    return absl::OkStatus();
  };
  const absl::StatusOr<std::vector<Release>> releases = FindReleases(api);
  if (!releases.ok()) return releases.status();
  for (const Release& release : *releases) {
    absl::Status status =
        kube::ForEach(api, {"v1", "configmaps", release.space, ""}, read, kOfTheChart);
    if (!status.ok() && !absl::IsPermissionDenied(status)) return status;
  }
  return resources;
}

absl::StatusOr<std::vector<kube::Json>> AskTopologies(kube::Api& api) {
  std::vector<kube::Json> topologies;
  absl::Status status = List(api, {topology::kTopologyVersion, topology::kTopologyResource, "", ""},
                             topology::kTopologyKind, topologies);
  if (!status.ok() && !absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  return topologies;
}

absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api) {
  op::gangs::ClusterObjects objects;
  absl::Status status = List(api, {"v1", "nodes", "", ""}, "Node", objects.nodes);
  if (status.ok()) status = List(api, {"v1", "pods", "", ""}, "Pod", objects.pods);
  if (status.ok()) status = List(api, {"v1", "events", "", ""}, "Event", objects.events);
  if (!status.ok()) return status;
  auto rdma = AskRdmaResources(api);
  if (!rdma.ok()) return rdma.status();
  objects.rdma = *std::move(rdma);
  auto topologies = AskTopologies(api);
  if (!topologies.ok()) return topologies.status();
  objects.topologies = *std::move(topologies);
  return objects;
}

}  // namespace railhead::cli
