// SPDX-License-Identifier: Apache-2.0
//
// Output of railhead-perf --preflight: a table of the findings, or JSON.
#ifndef RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_
#define RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/finding.h"
#include "railhead/railhead.h"

namespace railhead::perf {

// Copies of the library's findings, with the fields of their JSON.
class PreflightReport {
 public:
  void Add(const rhFinding_t& finding);
  Severity worst() const { return Worst(findings_); }
  std::string Table(int ranks) const;
  std::string Json(int ranks) const;

 private:
  std::vector<Finding> findings_;
  nlohmann::ordered_json entries_ = nlohmann::ordered_json::array();
};

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_PREFLIGHT_H_
