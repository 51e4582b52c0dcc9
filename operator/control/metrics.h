// SPDX-License-Identifier: Apache-2.0
//
// The operator's metrics for Prometheus. The webhook, the controllers and serve.cc set them;
// serve.cc answers GET /metrics with them.
#ifndef RAILHEAD_OPERATOR_CONTROL_METRICS_H_
#define RAILHEAD_OPERATOR_CONTROL_METRICS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/cache/informer.h"
#include "operator/admission/mutation.h"
#include "operator/collector/verdict_counts.h"
#include "operator/gangs/gang_counts.h"

namespace railhead::op {

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Counts one answered review. `kind`: "Pod", "Job" or "other".
  void CountAdmission(absl::string_view kind, Outcome outcome, absl::Duration duration);
  // Counts one review that was unreadable or arrived before all profiles were known.
  void CountRefusedReview();
  // Counts one check of certificates and caBundle.
  void CountCertificateCheck(bool ok);
  void SetTrusted(bool trusted);
  void SetCertificateExpiry(absl::Time authority, absl::Time serving);
  void SetCache(const kube::InformerState& cache);
  // Sets the number of RailProfiles in use, of unreadable ones, and of those in use that conflict
  // with another.
  void SetProfiles(size_t accepted, size_t refused, size_t conflicting);
  void SetLeads(bool leads);
  void SetPages(const PageCounts& pages);
  // Exports the first thousand series in their order; the rest is only counted.
  void SetVerdict(const VerdictCounts& counts);
  void SetGangs(const gangs::GangCounts& counts);

  // Returns all metrics in Prometheus text format.
  std::string Text() const;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_METRICS_H_
