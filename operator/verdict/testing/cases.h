// SPDX-License-Identifier: Apache-2.0
//
// The matrix of jobs that are set up wrongly, and of jobs that are fine.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_CASES_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

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
  // It is what it is by having lasted, or by not having lasted yet.
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
