// SPDX-License-Identifier: Apache-2.0
//
// Protocol of admission webhooks (admission.k8s.io/v1) as pure functions. The operator's server
// passes them to HttpServer.
#ifndef RAILHEAD_KUBE_HTTP_ADMISSION_H_
#define RAILHEAD_KUBE_HTTP_ADMISSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/http/http_server.h"
#include "kube/http/memory_budget.h"
#include "kube/json.h"

namespace railhead::kube {

// The request of an AdmissionReview: the operation and its object.
struct AdmissionRequest {
  std::string uid;
  std::string group;  // API group of the object's kind; empty: core group
  std::string version;
  std::string kind;
  std::string space;  // namespace
  std::string name;   // may be empty on CREATE, if the server generates the name
  std::string operation;
  Json object;  // null on DELETE
  Json before;  // the object before the operation; null on CREATE
};

// Response of a mutating webhook. It always allows; `patch` is a JSON Patch, empty for no change.
struct AdmissionAnswer {
  Json patch = Json::array();
  std::vector<std::string> warnings;  // kubectl prints them to the user
};

// Reads an AdmissionReview. InvalidArgument if it is not one, or has no request with a uid.
absl::StatusOr<AdmissionRequest> DecodeAdmissionReview(absl::string_view body);

// Returns the AdmissionReview that answers request `uid`. Makes warnings printable and cuts each
// after 240 bytes, as kubectl prints them.
std::string EncodeAdmissionReview(absl::string_view uid, const AdmissionAnswer& answer);

// Handles an HTTP request of one webhook: 400 with the reason if the body is not a review, 405 for
// methods other than POST, else the response of `decide`. Documents share `memory`: a review waits
// up to two seconds for free memory (then 503); one that needs more than the largest claim gets
// 413.
HttpResponse AnswerAdmission(const HttpRequest& request, MemoryBudget& memory,
                             const std::function<AdmissionAnswer(const AdmissionRequest&)>& decide);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_ADMISSION_H_
