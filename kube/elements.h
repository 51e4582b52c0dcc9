// SPDX-License-Identifier: Apache-2.0
//
// Views of lists, labels and annotations in API objects of unknown shape. Pure.
#ifndef RAILHEAD_KUBE_ELEMENTS_H_
#define RAILHEAD_KUBE_ELEMENTS_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::kube {

// Returns the elements of the list at `path` (as in FindPath); no elements if it is not a list.
const Json::array_t& ElementsAt(const Json& object, std::initializer_list<absl::string_view> path);

// Return the value of a label or an annotation; empty if absent or not a string.
std::string LabelOf(const Json& object, absl::string_view name);
std::string AnnotationOf(const Json& object, absl::string_view name);

// Returns the first condition of that type in status.conditions; null if there is none.
const Json* FindCondition(const Json& object, absl::string_view type);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_ELEMENTS_H_
