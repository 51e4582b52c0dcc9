// SPDX-License-Identifier: Apache-2.0
//
// Second step of `railhead doctor`: runs the checks on the evidence. Pure: equal evidence gives
// equal findings.
#ifndef RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_
#define RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "cli/doctor/evidence.h"

namespace railhead::cli::doctor {

// A check and its description.
struct Check {
  absl::string_view name;
  absl::string_view about;
};
std::vector<Check> Checks();

// A command for what the API server does not show.
struct NextStep {
  std::string symptom;  // "bandwidth is low"
  std::string command;
};

struct Diagnosis {
  std::vector<Finding> findings;  // in the order of Checks(); per check the worst first
  std::vector<NextStep> next;
};

// Diagnoses the cluster. Each check that could run has at least one finding. Findings of agents,
// operator and topology are repeated verbatim; pods are diagnosed by the operator's rules
// (operator/verdict).
Diagnosis Diagnose(const Evidence& evidence, const Scope& scope);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_
