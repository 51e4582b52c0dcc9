// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/page_lines.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::op::verdict {

absl::Status PageLines::Append(absl::string_view bytes) {
  seen_ += bytes.size();
  if (seen_ > kMaxPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the page has more than ", kMaxPageBytes, " bytes"));
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > kMaxLineBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a line of the page is longer than ", kMaxLineBytes, " bytes"));
    }
    line_.append(piece.data(), piece.size());
    if (end == absl::string_view::npos) return absl::OkStatus();
    if (absl::Status ended = EndLine(); !ended.ok()) return ended;
    bytes.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

absl::Status PageLines::EndLine() {
  if (IsOfInterest(line_)) {
    if (kept_.size() + line_.size() >= kMaxKeptBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the page has more than ", kMaxKeptBytes,
                       " bytes of series to store: too many ranks, rails or long texts"));
    }
    absl::StrAppend(&kept_, line_, "\n");
  }
  line_.clear();
  return absl::OkStatus();
}

std::string PageLines::Take() && {
  if (IsOfInterest(line_)) kept_ += line_;
  return std::move(kept_);
}

}  // namespace railhead::op::verdict
