// SPDX-License-Identifier: Apache-2.0
#include "operator/control/webhook.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>

#include "kube/monotonic.h"
#include "operator/admission/mutation.h"

namespace railhead::op {
namespace {

// The name for the log: a pod's own name is often still to be made from a prefix.
std::string NameOf(const kube::AdmissionRequest& request) {
  std::string name = request.name;
  if (name.empty()) name = kube::StringAt(request.object, {"metadata", "name"});
  if (name.empty()) name = kube::StringAt(request.object, {"metadata", "generateName"}) + "*";
  return request.space + "/" + name;
}

}  // namespace

Webhook::Webhook(InjectionConfig config, ProfileSource profiles, Metrics* metrics)
    : config_(std::move(config)), profiles_(std::move(profiles)), metrics_(metrics) {}

kube::HttpResponse Webhook::Handle(const kube::HttpRequest& request) const {
  if (request.path != kMutatePath) {
    return {404, "text/plain; charset=utf-8", "not found; the webhook is at /mutate\n"};
  }
  const std::shared_ptr<const ProfileSet> profiles = profiles_();
  kube::HttpResponse response;
  if (profiles == nullptr) {
    response = {503, "text/plain; charset=utf-8", "not ready: RailProfiles not read yet\n"};
  } else {
    response = kube::AnswerAdmission(
        request, documents_,
        [&](const kube::AdmissionRequest& review) { return Decide(review, *profiles); });
  }
  if (response.status != 200) metrics_->CountRefusedReview();
  return response;
}

kube::AdmissionAnswer Webhook::Decide(const kube::AdmissionRequest& request,
                                      const ProfileSet& profiles) const {
  const absl::Time start = kube::MonotonicNow();
  const bool is_pod = request.group.empty() && request.kind == "Pod";
  const bool is_job = request.group == "batch" && request.kind == "Job";
  Mutation mutation;
  // Anything else means a webhook rule too many.
  const bool creates = request.operation == "CREATE";
  if (creates && is_pod) mutation = MutatePod(request.object, config_, profiles, request.space);
  if (creates && is_job) mutation = StampJob(request.object, config_);
  if (request.operation == "UPDATE" && is_job) {
    mutation = RestampJob(request.before, request.object, config_);
  }
  if (mutation.outcome == Outcome::kMutated) {
    spdlog::info("{} {}: {} changes", request.kind, NameOf(request), mutation.patch.size());
  }
  for (const std::string& warning : mutation.warnings) {
    spdlog::warn("{} {}: {}", request.kind, NameOf(request), warning);
  }
  metrics_->CountAdmission(is_pod   ? "Pod"
                           : is_job ? "Job"
                                    : "other",
                           mutation.outcome, kube::MonotonicNow() - start);
  return {std::move(mutation.patch), std::move(mutation.warnings)};
}

}  // namespace railhead::op
