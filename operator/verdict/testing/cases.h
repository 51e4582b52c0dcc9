// SPDX-License-Identifier: Apache-2.0
//
// The matrix of jobs that are set up wrongly, and of jobs that are fine.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict::testing {

// What must be told.
struct Expected {
  std::string pod;
  std::string reason;
  std::vector<std::string> says;  // parts of the message
};

// What is done to a scene where nothing is wrong.
struct Case {
  const char* name;
  std::function<void(Scene&)> spoil;
  std::vector<Expected> expected = {};
  // How soon after the pods' start that is told, by who sees it from there on.
  absl::Duration within = absl::Seconds(5);
  // What is told at once, and no warning: it may pass, or is only to be known.
  std::vector<Expected> first = {};
  // It is what it is by not having lasted yet, by having lasted for long, or by what came before:
  // nothing that a cluster could be put into.
  bool takes_time = false;
  // So that the test's name is readable.
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

// Each must be told as expected, and nothing else.
const std::vector<Case>& BadCases();
// Nothing of these may be told.
const std::vector<Case>& GoodCases();

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_
