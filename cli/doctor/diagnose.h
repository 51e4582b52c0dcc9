// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_
#define RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "cli/doctor/evidence.h"
#include "cli/doctor/finding.h"

namespace railhead::cli::doctor {

// A check, and what it is about.
struct Check {
  absl::string_view name;
  absl::string_view about;
};
std::vector<Check> Checks();

// What is well, and what to repair. Pure: the same evidence gives the same findings. Each check
// that could be made has at least one. What agents, operator and topology have judged already is
// repeated in their words; pods are judged by the operator's own rules (operator/verdict).
Diagnosis Diagnose(const Evidence& evidence, const Scope& scope);

// The worst of all.
Verdict Worst(const Diagnosis& diagnosis);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_DIAGNOSE_H_
