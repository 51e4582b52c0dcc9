// SPDX-License-Identifier: Apache-2.0
//
// Output of railhead-perf --preflight: a line per finding, or JSON.
#ifndef RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_
#define RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_

#include <string>
#include <vector>

#include "railhead/railhead.h"

namespace railhead::perf {

// A copy of the library's rhFinding_t.
struct Finding {
  rhVerdict_t verdict = rhFindingOk;
  std::string check;
  int rail = -1;
  std::string device;
  std::string transport;
  std::vector<int> ranks;
  std::string where;
  std::string value;
  std::string fix;
};

Finding Keep(const rhFinding_t& finding);

// Returns the worst verdict.
rhVerdict_t Worst(const std::vector<Finding>& findings);

std::string PreflightTable(int ranks, const std::vector<Finding>& findings);
std::string PreflightJson(int ranks, const std::vector<Finding>& findings);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_
