// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/print.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable_text.h"
#include "cli/doctor/diagnose.h"
#include "cli/output/words.h"

namespace railhead::cli::doctor {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMostOfACheck = 20;

struct Style {
  const char* word;  // of the text, all of one width
  const char* json;
  const char* colour;
};

const Style& StyleOf(Verdict verdict) {
  static constexpr std::array<Style, 3> kStyles = {
      {{"pass", "pass", "\x1b[32m"}, {"WARN", "warn", "\x1b[33m"}, {"FAIL", "fail", "\x1b[31m"}}};
  return kStyles[static_cast<size_t>(verdict)];
}

std::array<int64_t, 3> CountsOf(const Diagnosis& diagnosis) {
  std::array<int64_t, 3> counts = {};
  for (const Finding& finding : diagnosis.findings) {
    ++counts[static_cast<size_t>(finding.verdict)];
  }
  return counts;
}

std::string Coloured(Verdict verdict, absl::string_view text, bool colours) {
  return colours ? absl::StrCat(StyleOf(verdict).colour, text, "\x1b[0m") : std::string(text);
}

}  // namespace

std::string Text(const Diagnosis& diagnosis, bool colours) {
  std::string text;
  size_t width = 0;
  for (const Finding& finding : diagnosis.findings) width = std::max(width, finding.check.size());
  std::map<std::string, size_t> printed;  // by check
  std::map<std::string, size_t> all;
  for (const Finding& finding : diagnosis.findings) ++all[finding.check];
  const std::string indent(6 + width + 2, ' ');
  for (const Finding& finding : diagnosis.findings) {
    const size_t before = printed[finding.check]++;
    if (before >= kMostOfACheck) {
      if (before == kMostOfACheck) {
        absl::StrAppend(&text, indent, "and ", all[finding.check] - before,
                        " more; -o json shows all\n");
      }
      continue;
    }
    absl::StrAppend(
        &text, Coloured(finding.verdict, StyleOf(finding.verdict).word, colours), "  ",
        absl::StrFormat("%-*s", static_cast<int>(width), before == 0 ? finding.check : ""), "  ",
        PrintableText(finding.object), finding.object.empty() ? "" : ": ",
        PrintableText(finding.cause), "\n");
    if (!finding.fix.empty()) {
      absl::StrAppend(&text, indent, "fix: ", PrintableText(finding.fix), "\n");
    }
  }
  if (!diagnosis.next.empty()) absl::StrAppend(&text, "\nnext steps:\n");
  for (const NextStep& step : diagnosis.next) {
    absl::StrAppend(&text, "  ", step.symptom, "\n    ", PrintableText(step.command), "\n");
  }
  const auto [passes, warnings, failures] = CountsOf(diagnosis);
  absl::StrAppend(&text, "\n",
                  Coloured(Worst(diagnosis),
                           absl::StrCat(Counted(failures, "failure"), ", ",
                                        Counted(warnings, "warning"), ", ", passes, " passed"),
                           colours),
                  "\n");
  return text;
}

std::string JsonText(const Diagnosis& diagnosis, const Scope& scope) {
  static constexpr std::array<const char*, 3> kKinds = {"cluster", "node", "job"};
  OrderedJson json;
  json["scope"] = {{"kind", kKinds[static_cast<size_t>(scope.kind)]},
                   {"namespace", scope.space},
                   {"name", scope.name}};
  const auto [passes, warnings, failures] = CountsOf(diagnosis);
  json["result"] = StyleOf(Worst(diagnosis)).json;
  json["counts"] = {{"pass", passes}, {"warn", warnings}, {"fail", failures}};
  json["findings"] = OrderedJson::array();
  for (const Finding& finding : diagnosis.findings) {
    json["findings"].push_back({{"verdict", StyleOf(finding.verdict).json},
                                {"check", finding.check},
                                {"object", finding.object},
                                {"cause", finding.cause},
                                {"fix", finding.fix}});
  }
  json["next"] = OrderedJson::array();
  for (const NextStep& step : diagnosis.next) {
    json["next"].push_back({{"symptom", step.symptom}, {"command", step.command}});
  }
  return json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace railhead::cli::doctor
