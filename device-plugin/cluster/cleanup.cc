// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/cleanup.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/cluster/node_reporter.h"
#include "kube/client.h"
#include "kube/elements.h"
#include "kube/json.h"

namespace railhead::device_plugin {
namespace {

using kube::Json;

// Field manager of the operator's topology labels.
constexpr char kTopologyManager[] = "railhead-topology";

bool HasFieldsOf(const Json& node, absl::string_view manager) {
  const auto& managers = kube::ElementsAt(node, {"metadata", "managedFields"});
  return std::any_of(managers.begin(), managers.end(), [manager](const Json& entry) {
    return kube::StringAt(entry, {"manager"}) == manager;
  });
}

// Applying an empty object removes all fields applied before.
absl::Status Forget(kube::Api& api, const std::string& name, absl::string_view subresource,
                    absl::string_view manager) {
  const Json nothing = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
  return kube::Apply(api, {"v1", "nodes", "", name, std::string(subresource)}, manager, nothing)
      .status();
}

absl::Status ForgetFeature(kube::Api& api, const std::string& space, const std::string& node) {
  const kube::ObjectRef ref = FeatureOf(space, node);
  const absl::StatusOr<Json> feature = kube::Get(api, ref);
  // NFD is not installed, or got nothing of this node.
  if (absl::IsNotFound(feature.status())) return absl::OkStatus();
  if (!feature.ok()) return feature.status();
  return kube::Delete(api, ref, kube::StringAt(*feature, {"metadata", "uid"}),
                      kube::StringAt(*feature, {"metadata", "resourceVersion"}));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CleanUpNodes(kube::Api& api,
                                                      const CleanUpOptions& options) {
  std::vector<std::string> forgotten;
  absl::Status first_error;
  absl::Status listed = kube::ForEach(api, {"v1", "nodes", "", ""}, [&](const Json& node) {
    const bool told = options.agents && HasFieldsOf(node, kFieldManager);
    const bool labelled = options.topology && HasFieldsOf(node, kTopologyManager);
    if (!told && !labelled) return absl::OkStatus();
    const std::string name = kube::StringAt(node, {"metadata", "name"});
    absl::Status status;
    if (labelled) status.Update(Forget(api, name, "", kTopologyManager));
    if (told) {
      status.Update(Forget(api, name, "", kFieldManager));
      status.Update(Forget(api, name, "status", kFieldManager));
      if (!options.space.empty()) status.Update(ForgetFeature(api, options.space, name));
    }
    first_error.Update(status);
    if (status.ok()) forgotten.push_back(name);
    return absl::OkStatus();
  });
  if (!listed.ok()) return listed;
  if (!first_error.ok()) return first_error;
  return forgotten;
}

}  // namespace railhead::device_plugin
