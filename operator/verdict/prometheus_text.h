// SPDX-License-Identifier: Apache-2.0
//
// The lines of a metrics page (Prometheus, "Text-based format", version 0.0.4). Pure.
#ifndef RAILHEAD_OPERATOR_VERDICT_PROMETHEUS_TEXT_H_
#define RAILHEAD_OPERATOR_VERDICT_PROMETHEUS_TEXT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::op::verdict {

struct Sample {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;  // may be infinite or no number

  // The label's value; empty when there is none.
  absl::string_view Label(absl::string_view label) const;
};

// The metric's name that a line begins with; empty for comments, empty lines and what is none.
absl::string_view NameOfSample(absl::string_view line);

// A line that is no comment and not empty, without its line break. A time behind the value is left
// out. InvalidArgument says what is wrong, and never quotes more than a name.
absl::StatusOr<Sample> ParseSample(absl::string_view line);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PROMETHEUS_TEXT_H_
