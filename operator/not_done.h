// SPDX-License-Identifier: Apache-2.0
//
// What admission could not do for a pod that asks for RDMA, told in one annotation of the pod: what
// was not done, why, and what to write. One line for each reason, the most important one first:
//
//   NoIndex: no RANK: the Job is not Indexed; set spec.completionMode to Indexed
//
// The word before the colon is for machines and stays; the sentence is for people. The pod's
// containers have the annotation as the variable RAILHEAD_NOT_DONE, and the verdict makes an Event
// of it. Pure.
#ifndef RAILHEAD_OPERATOR_NOT_DONE_H_
#define RAILHEAD_OPERATOR_NOT_DONE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace railhead::op {

inline constexpr char kNotDone[] = "railhead.io/not-done";       // the annotation
inline constexpr char kNotDoneVariable[] = "RAILHEAD_NOT_DONE";  // the same in containers

enum class NotDone {
  kNoJob,            // the pod belongs to nothing that has ranks, and nobody expects one
  kKindHasNoRanks,   // the kind starts its ranks itself, or has none
  kKindUnknown,      // nobody knows what the kind writes into its pods
  kNoIndex,          // a job whose pods have no order
  kIndexInvalid,     // the pod's indices are not numbers, or contradict each other
  kSizeUnknown,      // it is not known how many pods there are
  kSizeInvalid,      // the number is not one, 0, or contradicts the index
  kOwnWorldSize,     // the container counts ranks itself
  kHalfSet,          // the container sets some of the variables and not the others
  kNoAddress,        // rank 0 has no name
  kGroupUnknown,     // an annotation names a group of ranks that does not exist
  kGang,             // the pod asks to wait for its gang, and does not
  kGangOfKind,       // the administrator asks so of its kind, and it does not
  kProfileConflict,  // several profiles match, so none is applied
};

// How loudly a reason is reported.
enum class NotDoneLevel {
  kQuiet,    // annotation and variable only: nobody asked for it
  kInfo,     // a warning to the creator, and an Event of type Normal
  kWarning,  // a warning to the creator, and an Event of type Warning
};

struct NotDoneRow {
  NotDone reason;
  NotDoneLevel level;
  absl::string_view word;
};

absl::Span<const NotDoneRow> NotDoneRows();
const NotDoneRow& RowOf(NotDone reason);

struct NotDoneNote {
  NotDone reason;
  std::string what;  // "no RANK: the Job is not Indexed"
  std::string fix;   // "set spec.completionMode to Indexed"

  bool operator==(const NotDoneNote&) const = default;
};

// A note out of a sentence, whose end after the last semicolon is what to write.
NotDoneNote NoteOf(NotDone reason, absl::string_view sentence);

// "no RANK: the Job is not Indexed; set spec.completionMode to Indexed"
std::string SentenceOf(const NotDoneNote& note);

// The annotation's text. Each part is made printable and cut, so that its size has a limit.
std::string FormatNotDone(absl::Span<const NotDoneNote> notes);

// Reads it. Lines that admission does not write are left out, since the pod is its user's.
std::vector<NotDoneNote> ParseNotDone(absl::string_view text);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_NOT_DONE_H_
