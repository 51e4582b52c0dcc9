// SPDX-License-Identifier: Apache-2.0
//
// RailReport of a job, for `kubectl get railreports`. Values only.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_RAIL_REPORT_H_
#define RAILHEAD_OPERATOR_COLLECTOR_RAIL_REPORT_H_

#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/collector/job_index.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op {

inline constexpr char kRailReportVersion[] = "railhead.io/v1alpha1";
inline constexpr char kRailReportKind[] = "RailReport";

// The RailReport that a job should have.
struct RailReport {
  std::string space;
  std::string name;
  kube::Json owners;       // ownerReferences: the report is deleted when all are gone
  kube::Json status;       // bounded; equal for equal findings
  bool is_clear = true;    // no fault was found
  bool is_certain = true;  // all facts are known: a fault not listed does not exist
};

// Builds the report of a job that has pods. Per reason: the number of pods, the first three of
// them, and the fix.
RailReport ReportOf(const JobName& job, const verdict::JobFacts& facts,
                    const std::vector<verdict::PodFinding>& findings);

// Returns the key of a report, unique in the cluster.
std::string ReportKey(const std::string& space, const std::string& name);

// Returns the key of the report of a pod's job, whether or not it exists.
std::string ReportKeyOf(const verdict::PodFacts& pod);

// Returns the status of a job without pods.
kube::Json ClearStatus();

// Returns the status to write over `before` if not all facts are known: `now` plus the reasons only
// in `before`, since they may persist. Reasons that no page makes or refutes would be in `now`.
kube::Json Merge(const kube::Json& before, const kube::Json& now);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_RAIL_REPORT_H_
