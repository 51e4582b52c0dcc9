// SPDX-License-Identifier: Apache-2.0
//
// Any text as the metrics page of a pod: it is refused with a line and a cause, or read the same
// way whatever foreign series stand beside it, and nothing of it can break a line or a JSON
// document.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/verdict/page_lines.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op::verdict {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckText(const std::string& text) {
  // 512 bytes, the last of them perhaps half a letter that became a whole one.
  Require(text.size() <= size_t{3} * 512);
  Require(absl::string_view(text).find_first_of(absl::string_view("\n\r\0", 3)) ==
          absl::string_view::npos);
  Require(kube::ParseJson(kube::Json(text).dump()).ok());
}

void Run(absl::string_view page) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(page);
  const absl::StatusOr<RuntimeReport> beside =
      ParseRuntimePage(absl::StrCat("up{a=\"b\"} 1\n", page, "\n# end\nup 1"));
  // Taken up in pieces, it says the same.
  PageLines lines;
  absl::Status taken;
  for (absl::string_view rest = page; taken.ok() && !rest.empty();) {
    const size_t piece = std::min(rest.size(), 1 + page.size() / 3);
    taken = lines.Append(rest.substr(0, piece));
    rest.remove_prefix(piece);
  }
  const absl::StatusOr<RuntimeReport> kept =
      taken.ok() ? ParseRuntimePage(std::move(lines).Take()) : taken;
  Require(kept.ok() == report.ok() && (!kept.ok() || *kept == *report));
  if (!report.ok()) {
    Require(absl::IsInvalidArgument(report.status()) &&
            absl::StrContains(report.status().message(), "the page"));
    Require(!beside.ok());
    return;
  }
  Require(beside.ok() && *beside == *report);
  for (const RankReport& rank : report->ranks) {
    CheckText(rank.job);
    CheckText(rank.degraded);
    if (rank.start.has_value()) CheckText(rank.start->trouble);
    for (const GivenRail& rail : rank.given) {
      CheckText(rail.device);
      CheckText(rail.trouble);
      Require(rail.trouble.empty() == rail.cause.empty());
    }
  }
}

}  // namespace
}  // namespace railhead::op::verdict

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::op::verdict::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
