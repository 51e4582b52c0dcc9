// SPDX-License-Identifier: Apache-2.0
//
// `railhead doctor`: one diagnosis from the data of agents, operator and API server.
#ifndef RAILHEAD_CLI_DOCTOR_DOCTOR_H_
#define RAILHEAD_CLI_DOCTOR_DOCTOR_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/doctor/evidence.h"
#include "kube/client.h"

namespace railhead::cli::doctor {

struct DoctorOptions {
  Scope scope;
  bool json = false;
  bool colours = false;
  std::string version;  // of this program
};

// Parses "cluster", "node NAME", "job NAMESPACE/NAME"; no words mean the cluster. A job without a
// namespace is in `space`. Returns InvalidArgument with the allowed forms and the word probably
// meant.
absl::StatusOr<Scope> ParseScope(const std::vector<std::string>& words, const std::string& space);

// Prints the diagnosis to `out` and errors, one per line, to `err`. `now`: see Collect. Returns the
// exit code (output/diagnosis.h); if the cluster does not respond, kFailed.
int RunDoctor(const DoctorOptions& options, kube::Api& api, const std::function<absl::Time()>& now,
              std::ostream& out, std::ostream& err);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_DOCTOR_H_
