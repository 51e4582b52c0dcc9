// SPDX-License-Identifier: Apache-2.0
//
// `railhead doctor`: one front for what agents, operator and API server know already.
#ifndef RAILHEAD_CLI_DOCTOR_DOCTOR_H_
#define RAILHEAD_CLI_DOCTOR_DOCTOR_H_

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

constexpr int kAllPass = 0;
constexpr int kWarned = 1;
constexpr int kFailed = 2;  // also bad input, and a cluster that does not answer

// "cluster", "node NAME", "job NAMESPACE/NAME", or nothing for the cluster; a job without a
// namespace is in `space`. InvalidArgument says what is allowed, and which word was probably meant.
absl::StatusOr<Scope> ParseScope(const std::vector<std::string>& words, const std::string& space);

// Prints the diagnosis to `out` and errors, each on a line, to `err`. Returns the exit status.
int RunDoctor(const DoctorOptions& options, kube::Api& api, absl::Time now, std::ostream& out,
              std::ostream& err);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_DOCTOR_H_
