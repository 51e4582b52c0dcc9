// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "kube/in_cluster.h"
#include "kube/json.h"
#include "kube/kubeconfig.h"
#include "kube/rest_client.h"
#include "operator/config.h"
#include "placement/topology/stored_topology.h"

namespace railhead::cli {
namespace {

// Items of a list have no apiVersion and kind.
absl::Status List(kube::Api& api, const kube::ObjectRef& all, const char* kind,
                  std::vector<kube::Json>& into) {
  return kube::ForEach(api, all, [&](const kube::Json& object) {
    into.push_back(object);
    into.back()["apiVersion"] = all.api;
    into.back()["kind"] = kind;
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

absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api, bool with_events) {
  op::gangs::ClusterObjects objects;
  absl::Status status = List(api, {"v1", "nodes", "", ""}, "Node", objects.nodes);
  if (status.ok()) status = List(api, {"v1", "pods", "", ""}, "Pod", objects.pods);
  if (status.ok() && with_events) {
    status = List(api, {"v1", "events", "", ""}, "Event", objects.events);
  }
  if (!status.ok()) return status;
  const auto read_resources = [&](const kube::Json& object) {
    if (auto rdma = op::ReadRdmaResources(object)) objects.rdma = *std::move(rdma);
    return absl::OkStatus();
  };
  status = kube::ForEach(api, {"v1", "configmaps", "", ""}, read_resources, kOfTheChart);
  if (!status.ok() && !absl::IsPermissionDenied(status)) return status;
  status = List(api, {topology::kTopologyVersion, topology::kTopologyResource, "", ""},
                topology::kTopologyKind, objects.topologies);
  if (!status.ok() && !absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  return objects;
}

}  // namespace railhead::cli
