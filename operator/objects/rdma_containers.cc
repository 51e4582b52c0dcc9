// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/rdma_containers.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;

// "0", "0.0", "0Mi": a quantity of zero requests nothing.
bool IsZero(const Json& quantity) {
  if (quantity.is_number()) return quantity == 0;
  if (!quantity.is_string()) return false;
  const std::string& text = quantity.get_ref<const std::string&>();
  const size_t number_end = text.find_first_not_of("0123456789.+-");
  const std::string number = text.substr(0, number_end);
  return !number.empty() && number.find_first_of("123456789") == std::string::npos;
}

bool AsksForRdma(const Json& container, const RdmaResources& rdma) {
  for (const absl::string_view section : {"limits", "requests"}) {
    const Json* resources = FindPath(container, {"resources", section});
    if (resources == nullptr || !resources->is_object()) continue;
    for (const auto& [name, quantity] : resources->items()) {
      if (rdma.Contains(name) && !IsZero(quantity)) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindRdmaContainers(const Json& pod_spec,
                                                            const RdmaResources& rdma) {
  std::vector<std::string> found;
  for (const absl::string_view list_name : {"initContainers", "containers"}) {
    const Json* list = Find(pod_spec, list_name);
    if (list == nullptr || list->is_null()) continue;
    if (!list->is_array()) {
      return absl::InvalidArgumentError(absl::StrCat("spec.", list_name, " is not a list"));
    }
    for (size_t i = 0; i < list->size(); ++i) {
      if (AsksForRdma((*list)[i], rdma)) found.push_back(absl::StrCat("/", list_name, "/", i));
    }
  }
  return found;
}

}  // namespace railhead::op
