// SPDX-License-Identifier: Apache-2.0
//
// Findings of `railhead doctor`. Values only.
#ifndef RAILHEAD_CLI_DOCTOR_FINDING_H_
#define RAILHEAD_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace railhead::cli::doctor {

enum class Verdict {
  kPass,
  kWarn,  // works, but needs attention; or could not be checked
  kFail,  // jobs run slower than intended, or not at all
};

struct Finding {
  Verdict verdict = Verdict::kPass;
  std::string check;   // a name of Checks() (diagnose.h), for scripts
  std::string object;  // "node n3", "job team/train"; empty: the cluster
  std::string cause;   // for a pass: what was found
  std::string fix;     // empty for a pass

  bool operator==(const Finding&) const = default;
};

// A command for what the API server does not show.
struct NextStep {
  std::string symptom;  // "bandwidth is low"
  std::string command;

  bool operator==(const NextStep&) const = default;
};

struct Diagnosis {
  std::vector<Finding> findings;  // in the order of Checks(); per check the worst first
  std::vector<NextStep> next;
};

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_FINDING_H_
