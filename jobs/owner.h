// SPDX-License-Identifier: Apache-2.0
//
// Owners of an object, such as the Job of a pod. The API server does not check owner references,
// whose text any user may write: one whose parts are not names is not an owner. Pure.
#ifndef RAILHEAD_JOBS_OWNER_H_
#define RAILHEAD_JOBS_OWNER_H_

#include <compare>
#include <optional>
#include <string>

#include "kube/json.h"

namespace railhead::jobs {

struct Owner {
  std::string api;  // "batch/v1"
  std::string kind;
  std::string name;
  std::string uid;

  bool operator==(const Owner&) const = default;
  auto operator<=>(const Owner&) const = default;  // arbitrary order
};

// Returns nullopt for an object without a controller, which is not recreated after deletion.
std::optional<Owner> ControllerOf(const kube::Json& object);

// Returns the controller, else the first owner with a kind; empty if there is none.
Owner OwnerOf(const kube::Json& object);

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_OWNER_H_
