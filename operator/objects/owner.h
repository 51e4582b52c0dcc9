// SPDX-License-Identifier: Apache-2.0
//
// Controller of an object, such as the Job of a pod. Used by admission, gangs and diagnosis.
#ifndef RAILHEAD_OPERATOR_OBJECTS_OWNER_H_
#define RAILHEAD_OPERATOR_OBJECTS_OWNER_H_

#include <compare>
#include <optional>
#include <string>

#include "kube/json.h"

namespace railhead::op {

// The controller of an object, from its owner references.
struct Owner {
  std::string api;  // "batch/v1"
  std::string kind;
  std::string name;
  std::string uid;

  bool operator==(const Owner&) const = default;
  auto operator<=>(const Owner&) const = default;  // arbitrary order
};

// Returns nullopt for an object without a controller, which is not recreated after deletion. The
// API server does not check owner references, whose text any user may write: one whose parts are
// not names is not a controller.
std::optional<Owner> ControllerOf(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_OWNER_H_
