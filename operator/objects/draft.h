// SPDX-License-Identifier: Apache-2.0
//
// An object under admission. All phases of admission edit one draft, so each phase sees earlier
// edits, and the edits together are the JSON Patch of the response. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_DRAFT_H_
#define RAILHEAD_OPERATOR_OBJECTS_DRAFT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"

namespace railhead::op {

class Draft {
 public:
  explicit Draft(kube::Json object) : object_(std::move(object)) {}

  // Returns the object with all edits applied. An edit invalidates pointers into the lists that it
  // changes.
  const kube::Json& object() const { return object_; }

  // Returns the value at a JSON Pointer; null if absent.
  const kube::Json* At(const std::string& pointer) const;

  // Sets the member, or inserts before the list entry, at a JSON Pointer. Its parent must exist.
  // Never use it to replace a user's value: only members that Railhead added may be set again.
  void Add(const std::string& pointer, kube::Json value);

  // Appends to the list at a JSON Pointer; creates it if it is absent or null. Returns
  // InvalidArgument without an edit if the value is not a list.
  absl::Status Append(const std::string& pointer, kube::Json value);

  // Adds a warning for the user, one sentence, prefixed with "railhead: ".
  void Warn(const std::string& sentence);

  const kube::Json& patch() const { return patch_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  kube::Json object_;
  kube::Json patch_ = kube::Json::array();
  std::vector<std::string> warnings_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_DRAFT_H_
