// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

struct SeverityRow {
  absl::string_view name;
  absl::string_view word;  // of tables, all of one width
  absl::string_view colour;
};

constexpr SeverityRow kSeverities[] = {{"ok", "ok  ", "\x1b[32m"},
                                       {"note", "note", "\x1b[36m"},
                                       {"warn", "WARN", "\x1b[33m"},
                                       {"fail", "FAIL", "\x1b[31m"}};

const SeverityRow& RowOf(Severity severity) { return kSeverities[static_cast<size_t>(severity)]; }

}  // namespace

absl::string_view SeverityName(Severity severity) { return RowOf(severity).name; }

Severity Worst(absl::Span<const Finding> findings) {
  Severity worst = Severity::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

size_t Count(absl::Span<const Finding> findings, Severity severity) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

std::string FindingLine(const Finding& finding) {
  return absl::StrCat(finding.object, ": ", finding.observed, finding.fix.empty() ? "" : "; ",
                      finding.fix);
}

std::string FindingsTable(absl::Span<const Finding> findings, bool colours, size_t max_per_check) {
  size_t width = 0;
  std::map<absl::string_view, size_t> all;  // by check
  for (const Finding& finding : findings) {
    width = std::max(width, finding.check.size());
    ++all[finding.check];
  }
  const std::string indent(4 + 2 + width + 2, ' ');
  std::map<absl::string_view, size_t> printed;
  std::string text;
  for (const Finding& finding : findings) {
    const size_t before = printed[finding.check]++;
    if (before == max_per_check) {
      absl::StrAppend(&text, indent, "and ", all[finding.check] - before,
                      " more; -o json shows all\n");
    }
    if (before >= max_per_check) continue;
    const absl::string_view word = RowOf(finding.severity).word;
    absl::StrAppend(&text, colours ? Coloured(finding.severity, word) : std::string(word), "  ",
                    absl::StrFormat("%-*s", static_cast<int>(width), finding.check), "  ",
                    PrintableText(finding.object), ": ", PrintableText(finding.observed), "\n");
    if (!finding.fix.empty()) {
      absl::StrAppend(&text, indent, "fix: ", PrintableText(finding.fix), "\n");
    }
  }
  return text;
}

std::string Coloured(Severity severity, absl::string_view text) {
  return absl::StrCat(RowOf(severity).colour, text, "\x1b[0m");
}

}  // namespace railhead
