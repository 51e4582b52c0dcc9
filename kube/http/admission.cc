// SPDX-License-Identifier: Apache-2.0
#include "kube/http/admission.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/printable_text.h"

namespace railhead::kube {
namespace {

constexpr char kApiVersion[] = "admission.k8s.io/v1";
constexpr size_t kMaxWarningBytes = 240;
// An API server waits for five seconds.
constexpr absl::Duration kMemoryTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<AdmissionRequest> DecodeAdmissionReview(absl::string_view body) {
  absl::StatusOr<Json> review = ParseJson(body);
  if (!review.ok()) return review.status();
  if (StringAt(*review, {"kind"}) != "AdmissionReview" ||
      StringAt(*review, {"apiVersion"}) != kApiVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an AdmissionReview of ", kApiVersion,
                     "; the webhook's admissionReviewVersions must be [\"v1\"]"));
  }
  const Json* request = Find(*review, "request");
  AdmissionRequest decoded;
  if (request != nullptr) decoded.uid = StringAt(*request, {"uid"});
  if (decoded.uid.empty()) {
    return absl::InvalidArgumentError("the AdmissionReview has no request with a uid");
  }
  decoded.group = StringAt(*request, {"kind", "group"});
  decoded.version = StringAt(*request, {"kind", "version"});
  decoded.kind = StringAt(*request, {"kind", "kind"});
  decoded.space = StringAt(*request, {"namespace"});
  decoded.name = StringAt(*request, {"name"});
  decoded.operation = StringAt(*request, {"operation"});
  const auto take = [&review](const char* name) {
    const auto found = review->at("request").find(name);
    return found == review->at("request").end() ? Json() : std::move(*found);
  };
  decoded.object = take("object");
  decoded.before = take("oldObject");
  return decoded;
}

std::string EncodeAdmissionReview(absl::string_view uid, const AdmissionAnswer& answer) {
  Json response = {{"uid", std::string(uid)}, {"allowed", true}};
  if (!answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = absl::Base64Escape(DumpJson(answer.patch));
  }
  for (const std::string& warning : answer.warnings) {
    response["warnings"].push_back(PrintableText(warning, kMaxWarningBytes));
  }
  return DumpJson({{"apiVersion", kApiVersion},
                   {"kind", "AdmissionReview"},
                   {"response", std::move(response)}});
}

HttpResponse AnswerAdmission(
    const HttpRequest& request, MemoryBudget& memory,
    const std::function<AdmissionAnswer(const AdmissionRequest&)>& decide) {
  if (request.method != "POST") return {405, "text/plain; charset=utf-8", "use POST\n"};
  const size_t needed = JsonTreeBytes(request.body);
  if (needed > memory.largest_claim()) {
    return {413, "text/plain; charset=utf-8",
            absl::StrCat("the review would take ", needed, " bytes of memory, more than ",
                         memory.largest_claim(), "\n")};
  }
  const std::optional<MemoryBudget::Claim> claim = memory.Take(needed, kMemoryTimeout);
  if (!claim.has_value()) {
    return {503, "text/plain; charset=utf-8", "all memory for reviews is in use; retry later\n"};
  }
  const absl::StatusOr<AdmissionRequest> review = DecodeAdmissionReview(request.body);
  if (!review.ok()) {
    return {400, "text/plain; charset=utf-8", absl::StrCat(review.status().message(), "\n")};
  }
  return {200, "application/json", EncodeAdmissionReview(review->uid, decide(*review))};
}

}  // namespace railhead::kube
