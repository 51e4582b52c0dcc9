// SPDX-License-Identifier: Apache-2.0
//
// JSON Patch operations (RFC 6902), for admission and gangs.
#ifndef RAILHEAD_OPERATOR_OBJECTS_JSON_PATCH_H_
#define RAILHEAD_OPERATOR_OBJECTS_JSON_PATCH_H_

#include <string>
#include <utility>

#include "kube/json.h"

namespace railhead::op {

// Returns an "add" operation, the only one in use: "remove" would delete a user's value. It
// replaces an existing member, so use it for absent members and for Railhead's own only.
inline kube::Json AddOperation(std::string path, kube::Json value) {
  return {{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_JSON_PATCH_H_
