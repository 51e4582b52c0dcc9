// SPDX-License-Identifier: Apache-2.0
#include "operator/not_done.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable_text.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxNotes = 4;
constexpr size_t kMaxPart = 300;  // bytes; an Event has room for both parts
constexpr absl::string_view kFixFollows = "; ";

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

std::string Part(absl::string_view text) { return PrintableText(text, kMaxPart); }

std::optional<NotDoneNote> ParseLine(absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(": ", 1));
  const auto* row = std::find_if(std::begin(kNotDoneRows), std::end(kNotDoneRows),
                                 [&](const NotDoneRow& r) { return r.word == parts.first; });
  const size_t end = parts.second.rfind(kFixFollows);
  if (row == std::end(kNotDoneRows) || end == absl::string_view::npos) return std::nullopt;
  return NotDoneNote{row->reason, Part(parts.second.substr(0, end)),
                     Part(parts.second.substr(end + kFixFollows.size()))};
}

}  // namespace

const NotDoneRow& RowOf(NotDone reason) {
  return *std::find_if(std::begin(kNotDoneRows), std::end(kNotDoneRows),
                       [reason](const NotDoneRow& row) { return row.reason == reason; });
}

NotDoneNote NoteOf(NotDone reason, absl::string_view sentence) {
  const size_t end = sentence.rfind(kFixFollows);
  if (end == absl::string_view::npos) {
    return {reason, std::string(sentence), "correct it, or remove it"};
  }
  return {reason, std::string(sentence.substr(0, end)),
          std::string(sentence.substr(end + kFixFollows.size()))};
}

std::string SentenceOf(const NotDoneNote& note) {
  return absl::StrCat(Part(note.what), kFixFollows, Part(note.fix));
}

std::string FormatNotDone(absl::Span<const NotDoneNote> notes) {
  std::string text;
  for (const NotDoneNote& note : notes.subspan(0, kMaxNotes)) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", RowOf(note.reason).word, ": ",
                    SentenceOf(note));
  }
  return text;
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
