// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/not_done.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "jobs/job.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxNotes = 4;
constexpr size_t kMaxArgument = 63;  // bytes
constexpr absl::string_view kCut = "...";
constexpr absl::string_view kNotAWord = "?";

constexpr NotDoneRow kNotDoneRows[] = {
    {NotDone::kNoJob, NotDoneLevel::kQuiet, "NoJob"},
    {NotDone::kKindHasNoRanks, NotDoneLevel::kInfo, "KindHasNoRanks"},
    {NotDone::kKindUnknown, NotDoneLevel::kInfo, "KindUnknown"},
    {NotDone::kNoIndex, NotDoneLevel::kInfo, "NoIndex"},
    {NotDone::kIndexInvalid, NotDoneLevel::kWarning, "IndexInvalid"},
    {NotDone::kSizeUnknown, NotDoneLevel::kWarning, "SizeUnknown"},
    {NotDone::kSizeInvalid, NotDoneLevel::kWarning, "SizeInvalid"},
    {NotDone::kOwnWorldSize, NotDoneLevel::kInfo, "OwnWorldSize"},
    {NotDone::kHalfSet, NotDoneLevel::kWarning, "HalfSet"},
    {NotDone::kNoAddress, NotDoneLevel::kQuiet, "NoAddress"},
    {NotDone::kGroupUnknown, NotDoneLevel::kWarning, "GroupUnknown"},
    {NotDone::kGang, NotDoneLevel::kWarning, "GangNotPossible"},
    {NotDone::kGangOfKind, NotDoneLevel::kInfo, "GangOfKindNotPossible"},
    {NotDone::kProfileConflict, NotDoneLevel::kWarning, "ProfileConflict"},
};

struct CauseRow {
  Cause cause;
  absl::string_view word;
  size_t arguments;
  absl::string_view what;
  absl::string_view fix;
};

constexpr absl::string_view kSetGangSize =
    "set it to the number of pods, or recreate their Job if it was created while the operator was "
    "unavailable";
constexpr absl::string_view kCorrect = "correct it, or remove it";
constexpr absl::string_view kSetAllOrNone = "set RANK, WORLD_SIZE and MASTER_ADDR, or none of them";

constexpr CauseRow kCauseRows[] = {
    {Cause::kOwnWorldSize, "OwnWorldSize", 1,
     "container $0 gets no RANK: its own WORLD_SIZE is not the number of the job's pods",
     "remove WORLD_SIZE, or set RANK as well"},
    {Cause::kRankAlone, "RankAlone", 1, "container $0 sets RANK but not WORLD_SIZE", kSetAllOrNone},
    {Cause::kSizeAlone, "SizeAlone", 1, "container $0 sets WORLD_SIZE but not RANK", kSetAllOrNone},
    {Cause::kNoSubdomain, "NoSubdomain", 0, "no MASTER_ADDR: the pod has no subdomain",
     "set spec.subdomain in the pod's template to a headless Service"},
    {Cause::kNoGangSize, "NoGangSize", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/gang-size] is missing",
     kSetGangSize},
    {Cause::kGangSizeNoNumber, "GangSizeNoNumber", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/gang-size] must be a "
     "number of pods from 1 to 100000",
     kCorrect},
    {Cause::kTrueWithoutOwner, "TrueWithoutOwner", 0,
     "the pod does not wait for its gang: metadata.labels[railhead.io/gang] is true, which means "
     "the pods of one owner, but this pod has no owner",
     "set the label to a name for the gang"},
    {Cause::kNativeNoGangSize, "NativeNoGangSize", 0,
     "no RANK in fabric order: metadata.annotations[railhead.io/gang-size] is missing",
     kSetGangSize},
    {Cause::kNativeGangSizeNoNumber, "NativeGangSizeNoNumber", 0,
     "no RANK in fabric order: metadata.annotations[railhead.io/gang-size] must be a number of "
     "pods from 1 to 100000",
     kCorrect},
    {Cause::kNativeTrueWithoutOwner, "NativeTrueWithoutOwner", 0,
     "no RANK in fabric order: metadata.labels[railhead.io/gang] is true, which means the pods of "
     "one owner, but this pod has no owner",
     "set the label to a name for the gang"},
    {Cause::kIgnoredByScheduler, "IgnoredByScheduler", 1,
     "metadata.annotations[$0] is ignored, because kube-scheduler places the pod "
     "(spec.schedulingGroup)",
     "remove it, and name a node label in spec.schedulingConstraints.topology of the PodGroup"},
    {Cause::kOtherScheduler, "OtherScheduler", 1,
     "the pod does not wait for its gang: spec.schedulerName is $0, which chooses nodes itself",
     "remove spec.schedulerName or the label"},
    {Cause::kNodeNamed, "NodeNamed", 0,
     "the pod does not wait for its gang: spec.nodeName already names a node", "remove it"},
    {Cause::kExclusiveTopology, "ExclusiveTopology", 1,
     "the pod does not wait for its gang: metadata.annotations[$0] places the first pod before the "
     "others are created, so they cannot start together",
     "remove it, and name a level in metadata.annotations[railhead.io/require-level]"},
    {Cause::kDeviceClass, "DeviceClass", 1,
     "the pod does not wait for its gang: resource $0 is not listed by nodes, so the free amount "
     "on each node is unknown",
     "remove the label, or let kube-scheduler place the pods together (spec.schedulingGroup)"},
    {Cause::kTooLarge, "TooLarge", 3,
     "the pod does not wait for its gang: $0 takes $1 bytes in memory, and the operator keeps at "
     "most $2 of such fields of a pod",
     "shorten it: select nodes and pods by one label instead of a list of values"},
    {Cause::kRuleAboutPods, "RuleAboutPods", 1,
     "the pod does not wait for its gang: $0 is not supported for gangs, except an anti-affinity "
     "to pods like this one with the topologyKey kubernetes.io/hostname",
     "remove it, or make it a preference"},
    {Cause::kPattern, "Pattern", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/pattern] must be ring, "
     "tree or alltoall",
     kCorrect},
    {Cause::kSameRails, "SameRails", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/same-rails] must be "
     "true or false",
     kCorrect},
    {Cause::kLevel, "Level", 1,
     "the pod does not wait for its gang: metadata.annotations[$0] must be the name of a level, "
     "such as leaf",
     kCorrect},
    {Cause::kDuration, "Duration", 1,
     "the pod does not wait for its gang: metadata.annotations[$0] must be a duration such as 90s, "
     "10m or 1h30m",
     kCorrect},
    {Cause::kWaitWithoutLevel, "WaitWithoutLevel", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/prefer-wait] needs "
     "metadata.annotations[railhead.io/prefer-level], the level to wait for",
     kCorrect},
    {Cause::kTimeoutPolicy, "TimeoutPolicy", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/gang-timeout-policy] "
     "must be release or fail, and be set together with "
     "metadata.annotations[railhead.io/gang-timeout]",
     kCorrect},
    {Cause::kGangsOff, "GangsOff", 0,
     "the pod does not wait for its gang: gangs are disabled in the operator",
     "remove the label, or enable operator.gangs in the chart"},
    {Cause::kSamePriority, "SamePriority", 3,
     "spec.priority: RailProfiles $0 and $1 match with the same priority $2, so none is applied",
     "give one of them a higher priority"},
};

// Returns whether the annotation may contain the text: one word, no quotes or shell characters.
bool IsArgument(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxArgument &&
         absl::ascii_isalnum(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return absl::ascii_isalnum(letter) || letter == '.' || letter == '_' || letter == '-' ||
                  letter == '/';
         });
}

std::string Argument(absl::string_view text) {
  const std::string word = text.size() <= kMaxArgument
                               ? std::string(text)
                               : absl::StrCat(text.substr(0, kMaxArgument - kCut.size()), kCut);
  return IsArgument(word) ? word : std::string(kNotAWord);
}

// Returns null if there is none.
const NotDoneRow* RowOf(absl::string_view word) {
  const auto* row = std::find_if(std::begin(kNotDoneRows), std::end(kNotDoneRows),
                                 [word](const NotDoneRow& one) { return one.word == word; });
  return row == std::end(kNotDoneRows) ? nullptr : row;
}

// Returns the cause with this word, of the table or of a kind.
std::optional<jobs::Cause> CauseOf(absl::string_view word) {
  for (const CauseRow& row : kCauseRows) {
    if (row.word == word) return jobs::Cause{"", row.word, row.arguments, row.what, row.fix};
  }
  const jobs::Cause* of_kind = jobs::CauseOf(word);
  return of_kind == nullptr ? std::nullopt : std::optional(*of_kind);
}

NotDoneNote Note(NotDone reason, absl::string_view cause, size_t count,
                 const std::vector<std::string>& arguments) {
  NotDoneNote note{reason, cause, {}};
  for (const std::string& argument : arguments) note.arguments.push_back(Argument(argument));
  note.arguments.resize(count, std::string(kNotAWord));
  return note;
}

std::optional<NotDoneNote> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(words.front(), absl::MaxSplits('/', 1));
  const NotDoneRow* row = RowOf(parts.first);
  const std::optional<jobs::Cause> cause = CauseOf(parts.second);
  if (row == nullptr || !cause || words.size() != 1 + cause->arguments) return std::nullopt;
  NotDoneNote note{row->reason, cause->word, {}};
  for (const absl::string_view word : absl::MakeConstSpan(words).subspan(1)) {
    if (!IsArgument(word) && word != kNotAWord) return std::nullopt;
    note.arguments.emplace_back(word);
  }
  return note;
}

// As many arguments as the row has.
std::string Fill(absl::string_view format, const NotDoneNote& note) {
  std::string arguments[3];
  std::copy_n(note.arguments.begin(), std::min(note.arguments.size(), std::size(arguments)),
              std::begin(arguments));
  return absl::Substitute(format, arguments[0], arguments[1], arguments[2]);
}

std::string Lines(absl::Span<const NotDoneNote> notes,
                  std::string (*line)(const NotDoneNote& note)) {
  return absl::StrJoin(notes.subspan(0, kMaxNotes), "\n",
                       [line](std::string* out, const NotDoneNote& note) { *out += line(note); });
}

}  // namespace

const NotDoneRow& RowOf(NotDone reason) {
  return *std::find_if(std::begin(kNotDoneRows), std::end(kNotDoneRows),
                       [reason](const NotDoneRow& row) { return row.reason == reason; });
}

std::string NotDoneNote::what() const { return Fill(CauseOf(cause)->what, *this); }

std::string NotDoneNote::fix() const { return Fill(CauseOf(cause)->fix, *this); }

NotDoneNote NoteOf(NotDone reason, Cause cause, const std::vector<std::string>& arguments) {
  const auto* row = std::find_if(std::begin(kCauseRows), std::end(kCauseRows),
                                 [cause](const CauseRow& one) { return one.cause == cause; });
  return Note(reason, row->word, row->arguments, arguments);
}

NotDoneNote NoteOf(const jobs::NoRank& missing) {
  const jobs::Cause& cause = *missing.cause;
  return Note(RowOf(cause.reason)->reason, cause.word, cause.arguments, missing.arguments);
}

std::string SentenceOf(const NotDoneNote& note) {
  return absl::StrCat(note.what(), "; ", note.fix());
}

std::string FormatNotDone(absl::Span<const NotDoneNote> notes) {
  return Lines(notes, [](const NotDoneNote& note) {
    return absl::StrCat(RowOf(note.reason).word, ": ", SentenceOf(note));
  });
}

std::string EncodeNotDone(absl::Span<const NotDoneNote> notes) {
  return Lines(notes, [](const NotDoneNote& note) {
    return absl::StrCat(RowOf(note.reason).word, "/", note.cause, note.arguments.empty() ? "" : " ",
                        absl::StrJoin(note.arguments, " "));
  });
}

std::vector<NotDoneNote> ParseNotDone(absl::string_view text) {
  std::vector<NotDoneNote> notes;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (notes.size() == kMaxNotes) break;
    if (std::optional<NotDoneNote> note = ParseLine(line)) notes.push_back(*std::move(note));
  }
  return notes;
}

}  // namespace railhead::op
