// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/draft.h"

#include "absl/strings/str_cat.h"
#include "operator/objects/json_patch.h"

namespace railhead::op {

using kube::Json;

const Json* Draft::At(const std::string& pointer) const {
  const Json::json_pointer at(pointer);
  return object_.contains(at) ? &object_.at(at) : nullptr;
}

void Draft::Add(const std::string& pointer, Json value) {
  patch_.push_back(AddOperation(pointer, std::move(value)));
  object_.patch_inplace(Json::array({patch_.back()}));
}

absl::Status Draft::Append(const std::string& pointer, Json value) {
  const Json* list = At(pointer);
  if (list == nullptr || list->is_null()) {
    Add(pointer, Json::array({std::move(value)}));
  } else if (list->is_array()) {
    Add(pointer + "/-", std::move(value));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(pointer, " is not a list"));
  }
  return absl::OkStatus();
}

void Draft::Warn(const std::string& sentence) {
  warnings_.push_back(absl::StrCat("railhead: ", sentence));
}

}  // namespace railhead::op
