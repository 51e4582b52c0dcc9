// SPDX-License-Identifier: Apache-2.0
#include "kube/elements.h"

namespace railhead::kube {

const Json::array_t& ElementsAt(const Json& object, std::initializer_list<absl::string_view> path) {
  static const Json::array_t kNoElements;
  const Json* list = FindPath(object, path);
  return list != nullptr && list->is_array() ? list->get_ref<const Json::array_t&>() : kNoElements;
}

std::string LabelOf(const Json& object, absl::string_view name) {
  return StringAt(object, {"metadata", "labels", name});
}

std::string AnnotationOf(const Json& object, absl::string_view name) {
  return StringAt(object, {"metadata", "annotations", name});
}

const Json* FindCondition(const Json& object, absl::string_view type) {
  for (const Json& condition : ElementsAt(object, {"status", "conditions"})) {
    if (StringAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

}  // namespace railhead::kube
