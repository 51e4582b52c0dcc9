// SPDX-License-Identifier: Apache-2.0
//
// The protocol of admission webhooks (admission.k8s.io/v1) as pure functions.
#ifndef RAILHEAD_KUBE_ADMISSION_H_
#define RAILHEAD_KUBE_ADMISSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/http_server.h"
#include "kube/json.h"
#include "kube/memory_budget.h"

namespace railhead::kube {

// What the API server asks about.
struct AdmissionRequest {
  std::string uid;
  std::string group;  // of the object's kind; empty is the core group
  std::string version;
  std::string kind;
  std::string space;  // namespace
  std::string name;   // may be empty on CREATE, when the server makes the name
  std::string operation;
  Json object;  // null on DELETE
  Json before;  // the object as it was; null on CREATE
};

// A mutating webhook's answer: always "allowed"; `patch` is a JSON Patch, empty for no change.
struct AdmissionAnswer {
  Json patch = Json::array();
  std::vector<std::string> warnings;  // shown to the user by kubectl
};

// Reads an AdmissionReview. InvalidArgument when it is none, or has no request with a uid.
absl::StatusOr<AdmissionRequest> DecodeAdmissionReview(absl::string_view body);

// The AdmissionReview that answers request `uid`. Warnings, which kubectl prints, are made
// printable, and each ends after 240 bytes.
std::string EncodeAdmissionReview(absl::string_view uid, const AdmissionAnswer& answer);

// One webhook as an HTTP handler: 400 with the reason for a body that is no review, 405 for another
// method than POST, otherwise the answer. Documents share `memory`: a review waits until there is
// room for it (503 after two seconds); one that would need more than all of it gets 413.
HttpResponse AnswerAdmission(const HttpRequest& request, MemoryBudget& memory,
                             const std::function<AdmissionAnswer(const AdmissionRequest&)>& decide);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_ADMISSION_H_
