// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/print.h"

#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "base/printable_text.h"
#include "cli/output/diagnosis.h"
#include "cli/output/words.h"

namespace railhead::cli::doctor {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns the word of `verdict` and `result`: that of the severity, but "pass".
std::string VerdictOf(Severity severity) {
  return severity == Severity::kOk ? "pass" : std::string(SeverityName(severity));
}

}  // namespace

std::string Text(const Diagnosis& diagnosis, bool colours) {
  const std::vector<Finding>& findings = diagnosis.findings;
  std::string text = FindingsTable(findings, colours, kMostOfACheck);
  if (!diagnosis.next.empty()) absl::StrAppend(&text, "\nnext steps:\n");
  for (const NextStep& step : diagnosis.next) {
    absl::StrAppend(&text, "  ", step.symptom, "\n    ", PrintableText(step.command), "\n");
  }
  const auto counted = [&findings](Severity severity, const char* noun) {
    return Counted(static_cast<int64_t>(Count(findings, severity)), noun);
  };
  const std::string summary =
      absl::StrCat(counted(Severity::kFail, "failure"), ", ", counted(Severity::kWarn, "warning"),
                   ", ", Count(findings, Severity::kOk), " passed");
  return absl::StrCat(text, "\n", colours ? Coloured(Worst(findings), summary) : summary, "\n");
}

std::string JsonText(const Diagnosis& diagnosis, const Scope& scope) {
  static constexpr std::array<const char*, 3> kKinds = {"cluster", "node", "job"};
  const std::vector<Finding>& findings = diagnosis.findings;
  OrderedJson json;
  json["scope"] = {{"kind", kKinds[static_cast<size_t>(scope.kind)]},
                   {"namespace", scope.space},
                   {"name", scope.name}};
  json["result"] = VerdictOf(Worst(findings));
  for (const Severity severity : {Severity::kOk, Severity::kWarn, Severity::kFail}) {
    json["counts"][VerdictOf(severity)] = Count(findings, severity);
  }
  json["findings"] = OrderedJson::array();
  for (const Finding& finding : findings) {
    OrderedJson& entry = json["findings"].emplace_back(ToJson(finding));
    entry["verdict"] = VerdictOf(finding.severity);
    entry["cause"] = finding.observed;
  }
  json["next"] = OrderedJson::array();
  for (const NextStep& step : diagnosis.next) {
    json["next"].push_back({{"symptom", step.symptom}, {"command", step.command}});
  }
  return json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace railhead::cli::doctor
