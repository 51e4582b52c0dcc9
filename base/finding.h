// SPDX-License-Identifier: Apache-2.0
//
// A finding: what a check observed of an object, how severe that is, and how to fix it. Made by the
// runtime's pre-flight, topology discovery, the operator's diagnosis and `railhead doctor`, and
// printed here: as a line or a table for people, as JSON for programs.
//
//   findings.push_back({Severity::kFail, kPort, "rail 3 (mlx5_3)", "DOWN", "check the cable"});
#ifndef RAILHEAD_BASE_FINDING_H_
#define RAILHEAD_BASE_FINDING_H_

#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace railhead {

enum class Severity {
  kOk,    // as intended
  kNote,  // not checked, not applicable, or for information
  kWarn,  // works, but not as intended; or may pass
  kFail,  // a job gets less than intended, or does not run
};

struct Finding {
  Severity severity = Severity::kOk;
  std::string check;     // for scripts: a constant of the maker, such as "rate"
  std::string object;    // "node n3", "job team/train", "rail 1 (mlx5_1): rank 2"
  std::string observed;  // the value or fault, with its cause
  std::string fix;       // what to do; empty only for kOk

  bool operator==(const Finding&) const = default;
};

// Returns "ok", "note", "warn" or "fail".
absl::string_view SeverityName(Severity severity);

// Returns the worst severity; kOk if there are no findings.
Severity Worst(absl::Span<const Finding> findings);

size_t Count(absl::Span<const Finding> findings, Severity severity);

// Returns "OBJECT: OBSERVED; FIX", for Events, logs and conditions. Not made printable.
std::string FindingLine(const Finding& finding);

// Formats a table for people, of printable text: a line for each finding with its fix below. A
// check shows at most `max_per_check` findings and the number of the others.
std::string FindingsTable(absl::Span<const Finding> findings, bool colours = false,
                          size_t max_per_check = std::numeric_limits<size_t>::max());

// Returns {"severity", "check", "object", "observed", "fix"}; commands add the fields that only
// their findings have. Its target is separate: librailhead needs no JSON of findings.
nlohmann::ordered_json ToJson(const Finding& finding);

// Returns the text in the colour of the severity, for terminals.
std::string Coloured(Severity severity, absl::string_view text);

}  // namespace railhead

#endif  // RAILHEAD_BASE_FINDING_H_
