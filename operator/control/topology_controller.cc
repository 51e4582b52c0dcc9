// SPDX-License-Identifier: Apache-2.0
#include "operator/control/topology_controller.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "operator/topology/cluster_node.h"
#include "placement/topology/published.h"
#include "placement/topology/topology_status.h"

namespace railhead::topology {
namespace {

constexpr char kStatusManager[] = "railhead-operator";
constexpr absl::Duration kUntilSynced = absl::Seconds(1);
// Published labels may be changed by others, and missing kinds may have been installed.
constexpr absl::Duration kLookAgain = absl::Minutes(10);
constexpr kube::BackoffOptions kBackoff = {absl::Seconds(1), absl::Minutes(1)};

std::optional<ClusterNode> ViewOf(const op::StoredNode* node) {
  return node == nullptr ? std::nullopt : ClusterNodeOf(*node);
}

absl::Status Create(kube::Api& api) {
  absl::Status made = kube::Create(api, {kTopologyVersion, kTopologyResource, "", ""},
                                   {{"apiVersion", kTopologyVersion},
                                    {"kind", kTopologyKind},
                                    {"metadata", {{"name", kTopologyName}}}})
                          .status();
  if (absl::IsAlreadyExists(made)) return absl::OkStatus();
  if (!absl::IsNotFound(made)) return made;
  return absl::NotFoundError(
      "the cluster has no kind FabricTopology; install it with helm upgrade and "
      "operator.topology.enabled");
}

}  // namespace

TopologyController::TopologyController(TopologyControllerOptions options, kube::Api* api,
                                       op::ClusterCaches* caches, std::function<bool()> leads)
    : options_(std::move(options)),
      api_(api),
      caches_(caches),
      leads_(std::move(leads)),
      rounds_("topology", kBackoff),
      labeller_(api, leads_),
      foreign_(api, leads_) {
  caches->nodes().Subscribe(
      [this](const std::string&, const auto& before, const auto& after) {
        if (ViewOf(before.get()) != ViewOf(after.get())) rounds_.AskAfter(options_.settle);
      },
      [this] { rounds_.Ask(); });
  caches->topologies().Subscribe(
      [this](const std::string&, const auto&, const auto&) { rounds_.AskAfter(options_.settle); },
      [this] { rounds_.Ask(); });
}

void TopologyController::OnLead() { rounds_.Ask(); }

void TopologyController::Run(const std::stop_token& stop) {
  rounds_.Run(stop, [this] { return Round(); });
}

absl::Status TopologyController::Round() {
  if (!leads_()) {
    labeller_.Forget();
    foreign_.Forget();
    return absl::OkStatus();
  }
  // Wait until all caches are synced.
  if (!caches_->nodes().Synced() || !caches_->topologies().Synced()) {
    rounds_.AskAfter(kUntilSynced);
    return absl::OkStatus();
  }
  const kube::Cache<StoredTopology>& topologies = caches_->topologies().cache();
  const kube::Cache<StoredTopology>::Value stored = topologies.Get(kTopologyName);
  if (stored == nullptr) return Create(*api_);  // the watch will show it
  std::vector<ModelPart> parts;
  topologies.ForEach(
      [&](const std::string&, const auto& topology) { parts.push_back(topology->part); });
  const absl::StatusOr<std::optional<fabric::FabricModel>>& given = model_.Of(std::move(parts));
  std::vector<NodeLabeller::Node> nodes;
  std::vector<fabric::SeenNode> seen;
  caches_->nodes().cache().ForEach([&](const std::string&, const auto& node) {
    std::optional<ClusterNode> view = ClusterNodeOf(*node);
    if (!view) return;
    nodes.push_back({node->name, node->uid, std::move(view->published)});
    seen.push_back(std::move(view->seen));
  });
  TopologyReport report = {stored->generation,
                           given.ok() ? FindFabric(std::move(seen), *given)
                                      : absl::StatusOr<ClusterFabric>(given.status()),
                           std::nullopt};
  absl::Status trouble;
  if (options_.publish) {
    report.published = Publish(nodes, report.fabric);
    trouble.Update(*report.published);
    rounds_.AskAfter(kLookAgain);
  }
  if (!leads_()) return trouble;
  const std::optional<kube::Json> object = StatusToApply(*stored, report, options_.now());
  if (!object) return trouble;
  const absl::Time now = options_.monotonic();
  if (const absl::Time due = last_status_ + options_.between_statuses;
      now < due && !IsUrgent(stored->status, (*object)["status"])) {
    rounds_.AskAfter(due - now);
    return trouble;
  }
  const kube::ObjectRef ref = {kTopologyVersion, kTopologyResource, "", kTopologyName, "status"};
  const absl::Status applied = kube::Apply(*api_, ref, kStatusManager, *object).status();
  if (applied.ok()) last_status_ = now;
  // It was changed or deleted since: the watch will show it.
  if (!absl::IsAborted(applied) && !absl::IsNotFound(applied)) trouble.Update(applied);
  return trouble;
}

absl::Status TopologyController::Publish(const std::vector<NodeLabeller::Node>& nodes,
                                         const absl::StatusOr<ClusterFabric>& fabric) {
  // An invalid spec.model gives no positions of nodes: the published state stays.
  if (absl::IsInvalidArgument(fabric.status())) {
    return absl::FailedPreconditionError("nothing is published while spec.model is invalid");
  }
  if (!fabric.ok()) {
    fabric::FabricModel none;
    none.name = kTopologyName;
    absl::Status trouble = labeller_.Write(nodes, {});
    trouble.Update(foreign_.Write(none, nullptr, options_.now()));
    return trouble;
  }
  const fabric::FabricModel& model = fabric->found.model;
  const absl::StatusOr<PlaceLabels> labels = LabelsOfPlaces(model);
  absl::Status trouble = labels.status();
  if (labels.ok()) trouble.Update(labeller_.Write(nodes, LabelsByNode(model, *labels)));
  trouble.Update(foreign_.Write(model, labels.ok() ? &*labels : nullptr, options_.now()));
  return trouble;
}

}  // namespace railhead::topology
