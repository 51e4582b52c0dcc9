// SPDX-License-Identifier: Apache-2.0
//
// Parser of metrics in Prometheus text format, version 0.0.4. Pure.
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
  double value = 0;  // may be infinite or NaN

  // Returns the label's value; empty if absent.
  absl::string_view Label(absl::string_view label) const;
};

// Returns the metric name at the start of a line; empty for comments, empty and invalid lines.
absl::string_view NameOfSample(absl::string_view line);

// Parses a line without its line break; comments and empty lines are not allowed. Drops a timestamp
// after the value. Returns InvalidArgument with the cause; it quotes nothing but a name.
absl::StatusOr<Sample> ParseSample(absl::string_view line);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PROMETHEUS_TEXT_H_
