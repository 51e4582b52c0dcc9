// SPDX-License-Identifier: Apache-2.0
//
// What people get to read of a job with `kubectl get railreports`. Values only.
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

// The object of the kind RailReport that a job should have.
struct RailReport {
  std::string space;
  std::string name;
  kube::Json owners;       // ownerReferences: when all of these are gone, so is the report
  kube::Json status;       // bounded, and the same for the same findings
  bool is_clear = true;    // nothing is wrong
  bool is_certain = true;  // all that could be known is: what is not in it is not so
};

// What was found of a job that has pods. Of each reason: how many pods, the first three of them,
// and the fix.
RailReport ReportOf(const JobName& job, const verdict::JobFacts& facts,
                    const std::vector<verdict::Finding>& findings);

// The status that is to be written where `before` stands and less than all is known: with those
// reasons of `before` that are not in `now`, for nobody has seen them go.
kube::Json Merge(const kube::Json& before, const kube::Json& now);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_RAIL_REPORT_H_
