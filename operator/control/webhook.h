// SPDX-License-Identifier: Apache-2.0
//
// The admission webhook without its socket: handles HTTP requests to kMutatePath. Used by serve.cc.
#ifndef RAILHEAD_OPERATOR_CONTROL_WEBHOOK_H_
#define RAILHEAD_OPERATOR_CONTROL_WEBHOOK_H_

#include "absl/strings/string_view.h"
#include "kube/http/admission.h"
#include "kube/http/http_server.h"
#include "kube/http/memory_budget.h"
#include "operator/config/config.h"
#include "operator/control/metrics.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

// HTTP path of admission reviews of Pods (v1) and Jobs (batch/v1).
inline constexpr absl::string_view kMutatePath = "/mutate";

// Makes no calls, so it responds at once, and never denies an object. While the profiles are
// unknown it responds 503, and the API server applies its failurePolicy. Thread-safe.
class Webhook {
 public:
  // `metrics` must outlive the webhook.
  Webhook(InjectionConfig config, ProfileSource profiles, Metrics* metrics);

  kube::HttpResponse Handle(const kube::HttpRequest& request) const;

 private:
  kube::AdmissionAnswer Decide(const kube::AdmissionRequest& request,
                               const ProfileSet& profiles) const;

  const InjectionConfig config_;
  const ProfileSource profiles_;
  Metrics* const metrics_;
  // Memory for documents in progress, of the container's 128 MiB. A pod with 1000 variables needs
  // half of a MiB; such pods have a reserve, because a review that fails starts its pod without
  // our changes.
  mutable kube::MemoryBudget documents_{32U << 20U, 4U << 20U};
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_WEBHOOK_H_
