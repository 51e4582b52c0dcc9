// SPDX-License-Identifier: Apache-2.0
//
// First step of `railhead doctor`: reads the evidence from the API server. The later steps
// (diagnose.h, print.h) need no cluster.
#ifndef RAILHEAD_CLI_DOCTOR_COLLECT_H_
#define RAILHEAD_CLI_DOCTOR_COLLECT_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "cli/doctor/evidence.h"
#include "kube/client.h"

namespace railhead::cli::doctor {

// Reads the objects for a diagnosis of `scope` from the API server, page by page, and keeps the
// fields of Evidence. Records failed lists (missing right, no response) in `unread`. Needs the
// right to list these resources; changes nothing. `now`: the API server's time of day, valid after
// its first response.
Evidence Collect(kube::Api& api, const Scope& scope, const std::function<absl::Time()>& now,
                 const std::string& version);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_COLLECT_H_
