// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_DOCTOR_COLLECT_H_
#define RAILHEAD_CLI_DOCTOR_COLLECT_H_

#include <string>

#include "absl/time/time.h"
#include "cli/doctor/evidence.h"
#include "kube/client.h"

namespace railhead::cli::doctor {

// Reads from the API server what a diagnosis of this scope needs: in pages, of which one at a time
// is in memory, and of each object only what Evidence keeps. What cannot be read, for want of a
// right or of an answer, stands in `unread`. Rights used: list of the resources there; nothing is
// changed.
Evidence Collect(kube::Api& api, const Scope& scope, absl::Time now, const std::string& version);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_COLLECT_H_
