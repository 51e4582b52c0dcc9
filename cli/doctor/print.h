// SPDX-License-Identifier: Apache-2.0
//
// Last step of `railhead doctor`: formats the findings as text or JSON. Pure.
#ifndef RAILHEAD_CLI_DOCTOR_PRINT_H_
#define RAILHEAD_CLI_DOCTOR_PRINT_H_

#include <string>

#include "cli/doctor/diagnose.h"
#include "cli/doctor/evidence.h"

namespace railhead::cli::doctor {

// Formats the findings as a table, with at most 20 per check. Then
// commands for what the API server does not show, and a summary line.
std::string Text(const Diagnosis& diagnosis, bool colours);

// Formats everything as JSON; cli/README.md describes the fields.
std::string JsonText(const Diagnosis& diagnosis, const Scope& scope);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_PRINT_H_
