// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/pod_bounds.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"

namespace railhead::op::gangs {
namespace {

using kube::FindPath;
using kube::Json;

constexpr size_t kOfAString = sizeof(std::string);

// Bytes in memory of a value: its strings, and the fields that hold them. The parser limits depth.
size_t BytesOf(const Json* value) {  // NOLINT(misc-no-recursion)
  if (value == nullptr) return 0;
  if (value->is_string()) return kOfAString + value->get_ref<const std::string&>().size();
  size_t bytes = 0;
  if (value->is_object()) {
    for (const auto& [key, member] : value->items()) {
      bytes += kOfAString + key.size() + BytesOf(&member);
    }
  } else if (value->is_array()) {
    for (const Json& element : *value) bytes += BytesOf(&element);
  }
  return bytes;
}

size_t BytesOfRequired(const Json& pod, absl::string_view affinity) {
  return BytesOf(FindPath(
      pod, {"spec", "affinity", affinity, "requiredDuringSchedulingIgnoredDuringExecution"}));
}

size_t BytesOfHostPorts(const Json& pod) {
  size_t bytes = 0;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : kube::ElementsAt(pod, {"spec", list})) {
      for (const Json& port : kube::ElementsAt(container, {"ports"})) {
        if (kube::Find(port, "hostPort") != nullptr) bytes += 2 * kOfAString;
      }
    }
  }
  return bytes;
}

enum class Part { kRules, kClaims, kLabels };

struct BoundedField {
  Part part;
  absl::string_view name;
  size_t (*bytes)(const Json& pod);
};
constexpr BoundedField kBoundedFields[] = {
    {Part::kRules, "spec.affinity.nodeAffinity",
     [](const Json& pod) { return BytesOfRequired(pod, "nodeAffinity"); }},
    {Part::kRules, "spec.nodeSelector",
     [](const Json& pod) {
       return BytesOf(FindPath(pod, {"spec", "nodeSelector"}));
     }},
    {Part::kRules, "spec.tolerations",
     [](const Json& pod) {
       return BytesOf(FindPath(pod, {"spec", "tolerations"}));
     }},
    {Part::kClaims, "spec.affinity.podAntiAffinity",
     [](const Json& pod) { return BytesOfRequired(pod, "podAntiAffinity"); }},
    {Part::kClaims, "spec.containers.ports.hostPort", BytesOfHostPorts},
    {Part::kLabels, "metadata.labels",
     [](const Json& pod) {
       return BytesOf(FindPath(pod, {"metadata", "labels"}));
     }},
};

}  // namespace

PodExcess ExcessOf(const Json& pod) {
  PodExcess excess;
  for (const auto& [part, most, found, size] :
       {std::tuple(Part::kRules, kMostRules, &excess.rules, &excess.rules_bytes),
        std::tuple(Part::kClaims, kMostRules, &excess.claims, &excess.claims_bytes),
        std::tuple(Part::kLabels, kMostLabels, &excess.labels, &excess.labels_bytes)}) {
    size_t& all = *size;
    size_t largest = 0;
    const BoundedField* at = nullptr;
    for (const BoundedField& field : kBoundedFields) {
      if (field.part != part) continue;
      const size_t bytes = field.bytes(pod);
      all += bytes;
      if (at == nullptr || bytes > largest) {
        largest = bytes;
        at = &field;
      }
    }
    if (all <= most) continue;
    *found = true;
    if (excess.field.empty()) {
      excess.field = std::string(at->name);
      excess.bytes = largest;
      excess.most = most;
    }
  }
  return excess;
}

std::string WhyNotKept(const PodExcess& excess) {
  if (excess.field.empty()) return "";
  return absl::StrCat(excess.field, " takes ", excess.bytes, " bytes in memory, and the operator ",
                      "keeps at most ", excess.most,
                      " of such fields of a pod; shorten it: select ",
                      "nodes and pods by one label instead of a list of values");
}

}  // namespace railhead::op::gangs
