// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/collect.h"

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/access/release.h"
#include "cli/doctor/checks.h"
#include "kube/json.h"
#include "operator/config/config.h"
#include "placement/topology/stored_topology.h"

namespace railhead::cli::doctor {
namespace {

using kube::Json;
using kube::StringAt;

constexpr absl::string_view kOurPods = "labelSelector=app.kubernetes.io%2Fname%3Drailhead";

// Returns the name that kubectl and RBAC use, such as "deployments.apps".
std::string NameOf(const kube::ObjectRef& collection) {
  const size_t slash = collection.api.find('/');
  return slash == std::string::npos
             ? collection.resource
             : absl::StrCat(collection.resource, ".", collection.api.substr(0, slash));
}

class Collector {
 public:
  Collector(kube::Api& api, Evidence& evidence) : api_(api), evidence_(evidence) {}

  // Visits all objects that match a selector. A kind unknown to the cluster has none.
  void List(const kube::ObjectRef& collection, absl::string_view selector,
            const std::function<void(const Json&)>& visit) {
    if (!evidence_.unreachable.empty()) return;
    const absl::Status status = kube::ForEach(
        api_, collection,
        [&](const Json& object) {
          answered_ = true;
          visit(object);
          return absl::OkStatus();
        },
        selector);
    answered_ = answered_ || status.ok();
    if (status.ok() || absl::IsNotFound(status)) return;
    const bool denied = absl::IsPermissionDenied(status);
    if (!answered_ && !denied) {
      evidence_.unreachable = std::string(status.message());
      return;
    }
    answered_ = true;
    evidence_.unread.push_back(
        {"list", NameOf(collection), collection.space, denied, std::string(status.message())});
  }

 private:
  kube::Api& api_;
  Evidence& evidence_;
  bool answered_ = false;
};

// Collects what a release has in its namespace.
void CollectRelease(Collector& collector, const std::string& space, Evidence& evidence) {
  for (const auto& [resource, kind] :
       {std::pair("deployments", "Deployment"), std::pair("daemonsets", "DaemonSet")}) {
    collector.List({"apps/v1", resource, space, ""}, kOfTheChart,
                   [&, kind = kind](const Json& object) {
                     if (auto workload = ReadWorkload(object, kind)) {
                       evidence.workloads.push_back(*workload);
                     }
                   });
  }
  collector.List({"v1", "pods", space, ""}, kOurPods, [&](const Json& object) {
    if (auto pod = ReadComponentPod(object)) evidence.components.push_back(*pod);
  });
  collector.List({"v1", "configmaps", space, ""}, kOfTheChart, [&](const Json& object) {
    if (auto read = op::ReadRdmaResources(object)) evidence.rdma = *std::move(read);
  });
  collector.List({"coordination.k8s.io/v1", "leases", space, ""}, kOfTheChart,
                 [&](const Json& object) {
                   if (auto leader = ReadLeader(object)) evidence.leaders.push_back(*leader);
                 });
}

void CollectInstallation(Collector& collector, Evidence& evidence) {
  for (const kube::ObjectRef& collection : ReleaseCollections()) {
    if (!evidence.releases.empty()) break;
    collector.List(collection, kOfTheChart, [&](const Json& object) {
      AddRelease(ReleaseOf(object), evidence.releases);
      if (collection.resource != ReleaseCollections().front().resource) return;
      if (auto read = ReadWebhookConfiguration(object)) {
        evidence.webhooks.push_back(*std::move(read));
      }
    });
  }
  std::set<std::string> spaces = {InstallationOf(evidence).space};
  for (const Release& release : evidence.releases) spaces.insert(release.space);
  for (const std::string& space : spaces) CollectRelease(collector, space, evidence);
}

void CollectPods(Collector& collector, const Scope& scope, Evidence& evidence) {
  const std::string selector =
      scope.kind == Scope::Kind::kNode
          ? absl::StrCat("fieldSelector=spec.nodeName%3D", kube::Escape(scope.name))
          : "";
  collector.List({"v1", "pods", scope.space, ""}, selector,
                 [&](const Json& object) { AddPod(object, evidence); });
  collector.List({topology::kTopologyVersion, "railreports", scope.space, ""}, "",
                 [&](const Json& object) { evidence.reports.push_back(ReadReport(object)); });
}

// Collects events of the agents and of the operator, except those that RailReports contain.
void CollectEvents(Collector& collector, Evidence& evidence) {
  for (const char* source : {"railhead-device-plugin", "railhead-operator"}) {
    collector.List(
        {"v1", "events", "", ""}, absl::StrCat("fieldSelector=source%3D", source),
        [&](const Json& object) {
          std::optional<Told> told = ReadEvent(object);
          if (told && (told->kind == "Node" || absl::StartsWith(told->reason, "Gang") ||
                       told->reason == "HcasNotNearest" || told->reason == "SeveralResources")) {
            evidence.events.push_back(*std::move(told));
          }
        });
  }
  DropEventsOfGone(evidence);
}

}  // namespace

Evidence Collect(kube::Api& api, const Scope& scope, const std::function<absl::Time()>& now,
                 const std::string& version) {
  Evidence evidence;
  evidence.version = version;
  Collector collector(api, evidence);
  // First, as it defines which resources of nodes and pods are RDMA.
  CollectInstallation(collector, evidence);
  // Not after all lists: these may take longer than a leader has to renew its Lease.
  evidence.now = now();
  collector.List({"v1", "nodes", "", ""}, "", [&](const Json& object) {
    evidence.nodes[StringAt(object, {"metadata", "name"})] = ReadNode(object, evidence.rdma);
  });
  collector.List(
      {std::string(op::kProfileVersion), "railprofiles", "", ""}, "",
      [&](const Json& object) { evidence.profiles.push_back(op::ReadStoredProfile(object)); });
  CollectPods(collector, scope, evidence);
  CollectEvents(collector, evidence);
  if (scope.kind != Scope::Kind::kCluster) return evidence;
  collector.List({"apiextensions.k8s.io/v1", "customresourcedefinitions", "", ""}, kOfTheChart,
                 [&](const Json& object) { evidence.crds.push_back(ReadCrd(object)); });
  collector.List({topology::kTopologyVersion, topology::kTopologyResource, "", ""}, "",
                 [&](const Json& object) {
                   if (StringAt(object, {"metadata", "name"}) == topology::kTopologyName) {
                     evidence.topology = ReadTopology(object);
                   }
                 });
  return evidence;
}

}  // namespace railhead::cli::doctor
