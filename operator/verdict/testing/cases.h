// SPDX-License-Identifier: Apache-2.0
//
// Test cases: misconfigured jobs, and correct ones.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict::testing {

// An expected finding.
struct Expected {
  std::string pod;
  std::string reason;
  std::vector<std::string> says;  // parts of the message
};

// A change to a Scene without faults.
struct Case {
  const char* name;
  std::function<void(Scene&)> spoil;
  std::vector<Expected> expected = {};
  // Maximum time from the pods' start to the finding, for an observer since then.
  absl::Duration within = absl::Seconds(5);
  // Infos expected at once: possibly transient, or for information.
  std::vector<Expected> first = {};
  // The case depends on time or history, so a real cluster cannot be put into this state.
  bool takes_time = false;
  // Makes the test's name readable.
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

// Each must give exactly the expected findings.
const std::vector<Case>& BadCases();
// Each must give no finding.
const std::vector<Case>& GoodCases();

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_
