// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/forget.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device-plugin/node_reporter.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::device_plugin {
namespace {

using kube::Json;

bool HasOurs(const Json& node) {
  const Json* managers = kube::FindPath(node, {"metadata", "managedFields"});
  if (managers == nullptr || !managers->is_array()) return false;
  return std::any_of(managers->begin(), managers->end(), [](const Json& entry) {
    return kube::StringAt(entry, {"manager"}) == kFieldManager;
  });
}

// To apply nothing is to give up all that was applied before.
absl::Status ForgetNode(kube::Api& api, const std::string& name) {
  const Json nothing = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
  absl::Status status =
      kube::Apply(api, {"v1", "nodes", "", name}, kFieldManager, nothing).status();
  status.Update(
      kube::Apply(api, {"v1", "nodes", "", name, "status"}, kFieldManager, nothing).status());
  return status;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ForgetNodes(kube::Api& api) {
  std::vector<std::string> forgotten;
  absl::Status first_error;
  absl::Status listed = kube::ForEach(api, {"v1", "nodes", "", ""}, [&](const Json& node) {
    if (!HasOurs(node)) return absl::OkStatus();
    const std::string name = kube::StringAt(node, {"metadata", "name"});
    const absl::Status status = ForgetNode(api, name);
    first_error.Update(status);
    if (status.ok()) forgotten.push_back(name);
    return absl::OkStatus();
  });
  if (!listed.ok()) return listed;
  if (!first_error.ok()) return first_error;
  return forgotten;
}

}  // namespace railhead::device_plugin
