// SPDX-License-Identifier: Apache-2.0
//
// Steps that admission skipped for a pod that requests RDMA: the step, the cause and the fix. The
// pod's annotation has a line of words for each reason, most important first:
//
//   NoIndex/NotIndexed
//   SizeInvalid/NotAboveRank 4 5
//
// The first word is stable, for programs. Users may change the annotation, so it contains no text
// for people: what happened, and what to do, are in tables (not_done.cc, jobs/), and arguments are
// words of few characters. Containers get the sentences in the variable RAILHEAD_NOT_DONE, and the
// verdict reports them as an Event. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_NOT_DONE_H_
#define RAILHEAD_OPERATOR_OBJECTS_NOT_DONE_H_

#include <compare>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "jobs/kind.h"

namespace railhead::op {

inline constexpr char kNotDone[] = "railhead.io/not-done";       // the annotation
inline constexpr char kNotDoneVariable[] = "RAILHEAD_NOT_DONE";  // sentences, in containers

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

// Causes beside those of the kinds of jobs (jobs/kind.h), each with its sentence and fix in the
// table. $0, $1, ...: its arguments.
enum class Cause {
  // No RANK, by a container.
  kOwnWorldSize,  // container
  kRankAlone,     // container
  kSizeAlone,     // container
  kNoSubdomain,
  // Gangs.
  kNoGangSize,
  kGangSizeNoNumber,
  kTrueWithoutOwner,
  kNativeNoGangSize,  // of a pod that kube-scheduler places, likewise
  kNativeGangSizeNoNumber,
  kNativeTrueWithoutOwner,
  kIgnoredByScheduler,  // annotation
  kOtherScheduler,      // scheduler
  kNodeNamed,
  kExclusiveTopology,  // annotation
  kDeviceClass,        // resource
  kTooLarge,           // field, bytes, maximum
  kRuleAboutPods,      // field
  kPattern,
  kSameRails,
  kLevel,     // annotation
  kDuration,  // annotation
  kWaitWithoutLevel,
  kTimeoutPolicy,
  kGangsOff,
  // Profiles.
  kSamePriority,  // two names, priority
};

struct NotDoneNote {
  NotDone reason;
  absl::string_view cause;             // its word, in the table or of a kind
  std::vector<std::string> arguments;  // words

  bool operator==(const NotDoneNote&) const = default;
  std::strong_ordering operator<=>(const NotDoneNote&) const = default;  // arbitrary order

  std::string what() const;  // "no RANK: the Job is not Indexed"
  std::string fix() const;   // "set spec.completionMode to Indexed"
};

// Returns a note. An argument that is not a word of at most 63 letters, digits, '.', '_', '-' and
// '/' becomes "?": users choose some of them. A longer one is cut.
NotDoneNote NoteOf(NotDone reason, Cause cause, const std::vector<std::string>& arguments = {});
NotDoneNote NoteOf(const jobs::NoRank& missing);

// Returns "no RANK: the Job is not Indexed; set spec.completionMode to Indexed".
std::string SentenceOf(const NotDoneNote& note);

// Formats the variable: a line "WORD: SENTENCE" for each note, up to a maximum.
std::string FormatNotDone(absl::Span<const NotDoneNote> notes);

// Formats the annotation, likewise.
std::string EncodeNotDone(absl::Span<const NotDoneNote> notes);

// Parses the annotation. Skips lines that admission does not write.
std::vector<NotDoneNote> ParseNotDone(absl::string_view text);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_NOT_DONE_H_
