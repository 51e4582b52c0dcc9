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

constexpr absl::string_view kUseAJob =
    "if these pods are the ranks of a job, use an Indexed Job or a JobSet";
constexpr absl::string_view kSetGangSize =
    "set it to the number of pods, or recreate their Job if it was created while the operator was "
    "unavailable";
constexpr absl::string_view kCorrect = "correct it, or remove it";
constexpr absl::string_view kSetAllOrNone = "set RANK, WORLD_SIZE and MASTER_ADDR, or none of them";

constexpr CauseRow kCauseRows[] = {
    {Cause::kNoOwner, "NoOwner", 0, "no RANK: the pod belongs to no job", kUseAJob},
    {Cause::kNoOrder, "NoOrder", 1, "no RANK: the pods of a $0 have no order", kUseAJob},
    {Cause::kNoNumberOfPods, "NoNumberOfPods", 0,
     "no RANK: the pods of a StatefulSet do not contain their number",
     "annotate its template with railhead.io/world-size: the number of its pods"},
    {Cause::kElastic, "Elastic", 1, "no RANK: an elastic $0 assigns no ranks to its pods",
     "start the program with torchrun, which assigns ranks to its processes"},
    {Cause::kNotAWorker, "NotAWorker", 1,
     "no RANK: this pod of the $0 is a parameter server or an evaluator",
     "request RDMA only in the workers"},
    {Cause::kByMpirun, "ByMpirun", 0,
     "no RANK: mpirun assigns ranks to the processes that it starts over ssh, which do not see "
     "this "
     "container's variables",
     "let the launcher pass the variables on: its template needs the annotation "
     "railhead.io/launcher: openmpi (or hydra)"},
    {Cause::kByRay, "ByRay", 0, "no RANK: Ray starts and numbers the ranks inside its workers",
     "let Ray Train start them, or set RANK, WORLD_SIZE and MASTER_ADDR in the task of each"},
    {Cause::kWorkflow, "Workflow", 0, "no RANK: the steps of a Workflow are not the ranks of a job",
     "let a step of type resource create an Indexed Job or a JobSet"},
    {Cause::kKindUnknown, "KindUnknown", 1,
     "no RANK: the pod belongs to a '$0', a kind that Railhead does not know",
     "set RANK, WORLD_SIZE and MASTER_ADDR, or use an Indexed Job or a JobSet"},
    {Cause::kNotIndexed, "NotIndexed", 0, "no RANK: the Job is not Indexed",
     "set spec.completionMode to Indexed"},
    {Cause::kPodGroup, "PodGroup", 0, "no RANK: the pods of a PodGroup have no order",
     "add the label railhead.io/gang to them, or use an Indexed Job"},
    {Cause::kNoTaskIndex, "NoTaskIndex", 0, "no RANK: VC_TASK_INDEX is missing",
     "add the plugins env and svc to spec.plugins of the Volcano Job"},
    {Cause::kSeveralTasks, "SeveralTasks", 0,
     "no RANK: the Volcano Job has several tasks, whose order is unknown",
     "add the plugin pytorch to spec.plugins, or use a single task"},
    {Cause::kIndexNoNumber, "IndexNoNumber", 1,
     "no RANK: annotation batch.kubernetes.io/job-completion-index is '$0', which is not a number",
     "let the Job controller set it"},
    {Cause::kPodIndexNoNumber, "PodIndexNoNumber", 1,
     "no RANK: label apps.kubernetes.io/pod-index is '$0'",
     "let the StatefulSet controller set it"},
    {Cause::kJobsContradict, "JobsContradict", 3,
     "no RANK: label jobset.sigs.k8s.io/job-index is '$0', there are $1 Jobs, and annotation "
     "railhead.io/world-size is '$2'",
     "recreate the JobSet, or give each Job its own ranks with the annotation "
     "railhead.io/rank-group: job"},
    {Cause::kNoStamp, "NoStamp", 0,
     "no RANK or WORLD_SIZE: annotation railhead.io/world-size is missing",
     "recreate the Job: it was created while the operator was unavailable"},
    {Cause::kNoTaskSize, "NoTaskSize", 0,
     "no RANK or WORLD_SIZE: annotation railhead.io/world-size is missing",
     "add the plugin svc to spec.plugins of the Volcano Job, or annotate the task's template with "
     "railhead.io/world-size"},
    {Cause::kNoGroupSize, "NoGroupSize", 0,
     "no RANK or WORLD_SIZE: the pod lacks the label worker-index or the annotation size of "
     "leaderworkerset.sigs.k8s.io",
     "let the LeaderWorkerSet controller set them"},
    {Cause::kNoWorkers, "NoWorkers", 1,
     "no RANK: the $0 gives its pods no number of workers, or contradictory numbers",
     "give it at least two workers, or set RANK, WORLD_SIZE and MASTER_ADDR"},
    {Cause::kNotAboveRank, "NotAboveRank", 2,
     "no RANK or WORLD_SIZE: annotation railhead.io/world-size is '$0', not a number greater than "
     "the rank $1",
     "set it to the number of pods, or remove it"},
    {Cause::kOutsideGroup, "OutsideGroup", 2,
     "no RANK or WORLD_SIZE: worker index $0 is outside a group of size $1",
     "let its controller set leaderworkerset.sigs.k8s.io/size"},
    {Cause::kRankGroup, "RankGroup", 1,
     "metadata.annotations[railhead.io/rank-group] is '$0' and is treated as replicatedjob",
     "set it to replicatedjob or job"},
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
     "on "
     "each node is unknown",
     "remove the label, or let kube-scheduler place the pods together (spec.schedulingGroup)"},
    {Cause::kTooLarge, "TooLarge", 3,
     "the pod does not wait for its gang: $0 takes $1 bytes in memory, and the operator keeps at "
     "most $2 of such fields of a pod",
     "shorten it: select nodes and pods by one label instead of a list of values"},
    {Cause::kRuleAboutPods, "RuleAboutPods", 1,
     "the pod does not wait for its gang: $0 is not supported for gangs, except an anti-affinity "
     "to "
     "pods like this one with the topologyKey kubernetes.io/hostname",
     "remove it, or make it a preference"},
    {Cause::kPattern, "Pattern", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/pattern] must be ring, "
     "tree or alltoall",
     kCorrect},
    {Cause::kSameRails, "SameRails", 0,
     "the pod does not wait for its gang: metadata.annotations[railhead.io/same-rails] must be "
     "true "
     "or false",
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

const CauseRow& RowOf(Cause cause) {
  return *std::find_if(std::begin(kCauseRows), std::end(kCauseRows),
                       [cause](const CauseRow& row) { return row.cause == cause; });
}

std::optional<NotDoneNote> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(words.front(), absl::MaxSplits('/', 1));
  const auto* row = std::find_if(std::begin(kNotDoneRows), std::end(kNotDoneRows),
                                 [&](const NotDoneRow& r) { return r.word == parts.first; });
  const auto* cause = std::find_if(std::begin(kCauseRows), std::end(kCauseRows),
                                   [&](const CauseRow& r) { return r.word == parts.second; });
  if (row == std::end(kNotDoneRows) || cause == std::end(kCauseRows) ||
      words.size() != 1 + cause->arguments) {
    return std::nullopt;
  }
  NotDoneNote note{row->reason, cause->cause, {}};
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

std::string NotDoneNote::what() const { return Fill(RowOf(cause).what, *this); }

std::string NotDoneNote::fix() const { return Fill(RowOf(cause).fix, *this); }

NotDoneNote NoteOf(NotDone reason, Cause cause, const std::vector<std::string>& arguments) {
  NotDoneNote note{reason, cause, {}};
  for (const std::string& argument : arguments) note.arguments.push_back(Argument(argument));
  note.arguments.resize(RowOf(cause).arguments, std::string(kNotAWord));
  return note;
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
    return absl::StrCat(RowOf(note.reason).word, "/", RowOf(note.cause).word,
                        note.arguments.empty() ? "" : " ", absl::StrJoin(note.arguments, " "));
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
