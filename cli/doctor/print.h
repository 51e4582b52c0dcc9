// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_DOCTOR_PRINT_H_
#define RAILHEAD_CLI_DOCTOR_PRINT_H_

#include <string>

#include "cli/doctor/evidence.h"
#include "cli/doctor/finding.h"

namespace railhead::cli::doctor {

// A line for each finding, below it the fix, grouped by check; then commands for what cannot be
// seen from here, and a line that sums up. Of one check at most 20 findings.
std::string Text(const Diagnosis& diagnosis, bool colours);

// All of it, as cli/README.md has the fields.
std::string JsonText(const Diagnosis& diagnosis, const Scope& scope);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_PRINT_H_
