// SPDX-License-Identifier: Apache-2.0
//
// Checks that make up Diagnose; private to it.
#ifndef RAILHEAD_CLI_DOCTOR_CHECKS_H_
#define RAILHEAD_CLI_DOCTOR_CHECKS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "cli/doctor/evidence.h"

namespace railhead::cli::doctor {

// Collects the findings of one check.
class Notes {
 public:
  explicit Notes(absl::string_view check) : check_(check) {}

  void Warn(std::string object, std::string cause, std::string fix) {
    Add(Severity::kWarn, std::move(object), std::move(cause), std::move(fix));
  }
  void Fail(std::string object, std::string cause, std::string fix) {
    Add(Severity::kFail, std::move(object), std::move(cause), std::move(fix));
  }
  // Adds a pass if the check has no other findings.
  void Conclude(std::string pass) {
    if (findings_.empty()) Add(Severity::kOk, "", std::move(pass), "");
  }
  // An empty object is the cluster; an empty cause, one that an object of the API server omits.
  void Add(Severity severity, std::string object, std::string cause, std::string fix) {
    if (object.empty()) object = "cluster";
    if (cause.empty()) cause = "no cause is given";
    findings_.push_back(
        {severity, std::string(check_), std::move(object), std::move(cause), std::move(fix)});
  }
  std::vector<Finding> Take() && { return std::move(findings_); }

 private:
  const absl::string_view check_;
  std::vector<Finding> findings_;
};

// Returns the first release of the chart, else the defaults of the README.
Release InstallationOf(const Evidence& evidence);

// install_checks.cc
void CheckApi(const Evidence& evidence, Notes& notes);
void CheckRights(const Evidence& evidence, Notes& notes);
void CheckInstall(const Evidence& evidence, Notes& notes);
void CheckCrds(const Evidence& evidence, Notes& notes);
void CheckOperator(const Evidence& evidence, Notes& notes);
void CheckAgents(const Evidence& evidence, Notes& notes);
void CheckVersions(const Evidence& evidence, Notes& notes);

// admission_checks.cc
void CheckLeader(const Evidence& evidence, Notes& notes);
void CheckWebhook(const Evidence& evidence, Notes& notes);
void CheckProfiles(const Evidence& evidence, Notes& notes);

// node_checks.cc
void CheckNodes(const Evidence& evidence, Notes& notes);
void CheckDevices(const Evidence& evidence, Notes& notes);
void CheckGpuDirect(const Evidence& evidence, Notes& notes);
void CheckMemlock(const Evidence& evidence, Notes& notes);
void CheckTopology(const Evidence& evidence, Notes& notes);

// job_checks.cc
void CheckGangs(const Evidence& evidence, Notes& notes);
void CheckJobs(const Evidence& evidence, Notes& notes);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_CHECKS_H_
