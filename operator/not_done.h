// SPDX-License-Identifier: Apache-2.0
//
// Steps that admission skipped for a pod that requests RDMA, in one annotation: the step, the cause
// and the fix. One line per reason, most important first:
//
//   NoIndex: no RANK: the Job is not Indexed; set spec.completionMode to Indexed
//
// The word before the colon is stable, for programs; the sentence is for people. Containers get the
// annotation as the variable RAILHEAD_NOT_DONE, and the verdict reports it as an Event. Pure.
#ifndef RAILHEAD_OPERATOR_NOT_DONE_H_
#define RAILHEAD_OPERATOR_NOT_DONE_H_

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace railhead::op {

inline constexpr char kNotDone[] = "railhead.io/not-done";       // the annotation
inline constexpr char kNotDoneVariable[] = "RAILHEAD_NOT_DONE";  // the same in containers

enum class NotDone {
  kNoJob,            // the pod belongs to nothing with ranks, and none are expected
  kKindHasNoRanks,   // the kind starts ranks itself, or has none
  kKindUnknown,      // the variables that the kind sets are not known
  kNoIndex,          // a job whose pods have no order
  kIndexInvalid,     // indices are not numbers, or contradict each other
  kSizeUnknown,      // the number of pods is unknown
  kSizeInvalid,      // it is not a number, is 0, or contradicts the index
  kOwnWorldSize,     // the container counts ranks itself
  kHalfSet,          // the container sets only some of the variables
  kNoAddress,        // rank 0 has no host name
  kGroupUnknown,     // an annotation names a group of ranks that does not exist
  kGang,             // the pod requests to wait for its gang, but does not wait
  kGangOfKind,       // the administrator requests it for the kind, but the pod does not wait
  kProfileConflict,  // several profiles match, so none is applied
};

// Severity of a reason.
enum class NotDoneLevel {
  kQuiet,    // annotation and variable only: not requested
  kInfo,     // a warning to the creator, and an Event of type Normal
  kWarning,  // a warning to the creator, and an Event of type Warning
};

struct NotDoneRow {
  NotDone reason;
  NotDoneLevel level;
  absl::string_view word;
};

const NotDoneRow& RowOf(NotDone reason);

struct NotDoneNote {
  NotDone reason;
  std::string what;  // "no RANK: the Job is not Indexed"
  std::string fix;   // "set spec.completionMode to Indexed"

  bool operator==(const NotDoneNote&) const = default;
  auto operator<=>(const NotDoneNote&) const = default;  // arbitrary order
};

// Splits a sentence at the last semicolon; the fix comes after it.
NotDoneNote NoteOf(NotDone reason, absl::string_view sentence);

// Returns "no RANK: the Job is not Indexed; set spec.completionMode to Indexed".
std::string SentenceOf(const NotDoneNote& note);

// Formats the annotation. Each part is made printable and truncated, so the size is bounded.
std::string FormatNotDone(absl::Span<const NotDoneNote> notes);

// Parses it. Skips lines that admission does not write, since users can change the annotation.
std::vector<NotDoneNote> ParseNotDone(absl::string_view text);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_NOT_DONE_H_
