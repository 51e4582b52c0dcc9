// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_JSON_PATCH_H_
#define RAILHEAD_OPERATOR_JSON_PATCH_H_

#include <string>
#include <utility>

#include "kube/json.h"

namespace railhead::op {

// The one operation that we use: to remove would take something from the user. Where a member is
// there already, it gets the new value; so it may be one of ours only.
inline kube::Json AddOperation(std::string path, kube::Json value) {
  return {{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_JSON_PATCH_H_
