// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/init_container.h"

#include <utility>

#include "absl/status/statusor.h"
#include "kube/elements.h"
#include "operator/admission/lists.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr char kCpu[] = "100m";
constexpr char kMemory[] = "64Mi";

Json SecurityContext(const Json& served) {
  Json context = {{"allowPrivilegeEscalation", false},
                  {"readOnlyRootFilesystem", true},
                  {"capabilities", {{"drop", {"ALL"}}}},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  const Json* own = Find(served, "securityContext");
  if (own == nullptr || !own->is_object()) return context;
  for (const char* field : {"runAsUser", "runAsGroup", "runAsNonRoot"}) {
    const Json* value = Find(*own, field);
    if (value != nullptr && !value->is_null()) context[field] = *value;
  }
  return context;
}

// Returns whether the object's `resources` specify CPU or memory.
bool SaysAmounts(const Json& object) {
  for (const char* list : {"limits", "requests"}) {
    const Json* amounts = FindPath(object, {"resources", list});
    if (amounts == nullptr || !amounts->is_object()) continue;
    if (amounts->contains("cpu") || amounts->contains("memory")) return true;
  }
  return false;
}

bool ContainersSayAmounts(const Json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : kube::ElementsAt(spec, {list})) {
      if (SaysAmounts(container)) return true;
    }
  }
  return false;
}

}  // namespace

Json InitContainer(const char* name, const std::string& image, const Json& command,
                   const Json& mount, const Json& served, const Json& spec) {
  Json container = {{"name", name},
                    {"image", image},
                    {"command", command},
                    {"securityContext", SecurityContext(served)},
                    {"volumeMounts", Json::array({mount})}};
  if (ContainersSayAmounts(spec) && !SaysAmounts(spec)) {
    const Json amounts = {{"cpu", kCpu}, {"memory", kMemory}};
    container["resources"] = {{"limits", amounts}, {"requests", amounts}};
  }
  return container;
}

absl::Status AddInitContainers(const std::vector<Json>& containers, Draft& pod) {
  const absl::StatusOr<const Json*> inits = ListAt(pod, "/spec/initContainers");
  if (!inits.ok()) return inits.status();
  Json missing = Json::array();
  for (const Json& container : containers) {
    if (Named(*inits, StringAt(container, {"name"})) == nullptr) missing.push_back(container);
  }
  if (missing.empty()) return absl::OkStatus();
  if (*inits == nullptr) {
    pod.Add("/spec/initContainers", std::move(missing));
    return absl::OkStatus();
  }
  for (auto container = missing.rbegin(); container != missing.rend(); ++container) {
    pod.Add("/spec/initContainers/0", *container);
  }
  return absl::OkStatus();
}

}  // namespace railhead::op
