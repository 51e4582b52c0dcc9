// SPDX-License-Identifier: Apache-2.0
//
// An object under admission. The phases of admission edit one draft after the other, so each sees
// what those before it have added, and the edits together are the JSON Patch of the answer. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_DRAFT_H_
#define RAILHEAD_OPERATOR_ADMISSION_DRAFT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"

namespace railhead::op {

class Draft {
 public:
  explicit Draft(kube::Json object) : object_(std::move(object)) {}

  // The object with all edits so far. An edit invalidates pointers into the lists that it changes.
  const kube::Json& object() const { return object_; }

  // The value at a JSON Pointer, or null when there is none.
  const kube::Json* At(const std::string& pointer) const;

  // Sets the member, or inserts before the list entry, that the JSON Pointer names. The value
  // around it must be there. Nothing of the user's is ever removed: a member that is set again must
  // be one of ours.
  void Add(const std::string& pointer, kube::Json value);

  // Appends to the list at the JSON Pointer, which is created where it is absent or null.
  // InvalidArgument, and no edit, when something else is there.
  absl::Status Append(const std::string& pointer, kube::Json value);

  // One sentence for the user; "railhead: " is put before it.
  void Warn(const std::string& sentence);

  const kube::Json& patch() const { return patch_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  kube::Json object_;
  kube::Json patch_ = kube::Json::array();
  std::vector<std::string> warnings_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_DRAFT_H_
