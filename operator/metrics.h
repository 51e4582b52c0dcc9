// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_METRICS_H_
#define RAILHEAD_OPERATOR_METRICS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/informer.h"
#include "operator/admission/mutation.h"
#include "operator/collector/verdict_counts.h"
#include "operator/gangs/gang_counts.h"

namespace railhead::op {

// What the operator tells Prometheus. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // One review answered. `kind` is "Pod", "Job" or "other".
  void CountAdmission(absl::string_view kind, Outcome outcome, absl::Duration duration);
  // One review that could not be read, or came before all profiles were known.
  void CountRefusedReview();
  // One look at certificates and caBundle.
  void CountCertificateCheck(bool ok);
  void SetTrusted(bool trusted);
  void SetCertificateExpiry(absl::Time authority, absl::Time serving);
  void SetCache(const kube::InformerState& cache);
  // RailProfiles in the cluster: those that are used, and those that cannot be read. Of the former,
  // those that are in conflict with another one.
  void SetProfiles(size_t accepted, size_t refused, size_t conflicting);
  void SetLeads(bool leads);
  void SetPages(const PageCounts& pages);
  // The first thousand of them, in their order; the rest is only counted.
  void SetVerdict(const VerdictCounts& counts);
  void SetGangs(const gangs::GangCounts& counts);

  // All of it in Prometheus' text format.
  std::string Text() const;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_METRICS_H_
