// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/preflight.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace railhead::perf {
namespace {

using Json_ = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kVerdicts = {"ok", "note", "warn", "fail"};

const char* NameOf(rhVerdict_t verdict) { return kVerdicts.at(static_cast<size_t>(verdict)); }

ptrdiff_t Count(const std::vector<Finding>& findings, rhVerdict_t verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [verdict](const Finding& finding) { return finding.verdict == verdict; });
}

}  // namespace

Finding Keep(const rhFinding_t& finding) {
  Finding kept;
  kept.verdict = finding.verdict;
  kept.check = finding.check;
  kept.rail = finding.rail;
  kept.device = finding.device;
  kept.transport = finding.transport;
  kept.ranks.assign(finding.ranks, finding.ranks + finding.rank_count);
  kept.where = finding.where;
  kept.value = finding.value;
  kept.fix = finding.fix;
  return kept;
}

rhVerdict_t Worst(const std::vector<Finding>& findings) {
  rhVerdict_t worst = rhFindingOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
  return worst;
}

std::string PreflightTable(int ranks, const std::vector<Finding>& findings) {
  std::string text = absl::StrCat("# railhead-perf --preflight: ", ranks, " rank(s)\n");
  for (const Finding& finding : findings) {
    absl::StrAppend(&text, absl::StrFormat("%-5s %-13s", NameOf(finding.verdict), finding.check),
                    finding.where, ": ", finding.value);
    if (!finding.fix.empty()) absl::StrAppend(&text, ". Fix: ", finding.fix);
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, "# ", Count(findings, rhFindingOk), " ok, ",
                      Count(findings, rhFindingNote), " note, ", Count(findings, rhFindingWarn),
                      " warn, ", Count(findings, rhFindingFail), " fail\n");
}

std::string PreflightJson(int ranks, const std::vector<Finding>& findings) {
  Json_ root;
  root["ranks"] = ranks;
  root["verdict"] = NameOf(Worst(findings));
  root["findings"] = Json_::array();
  for (const Finding& finding : findings) {
    Json_ entry;
    entry["verdict"] = NameOf(finding.verdict);
    entry["check"] = finding.check;
    entry["rail"] = finding.rail >= 0 ? Json_(finding.rail) : Json_(nullptr);
    entry["device"] = finding.device;
    entry["transport"] = finding.transport;
    entry["ranks"] = finding.ranks;
    entry["where"] = finding.where;
    entry["value"] = finding.value;
    entry["fix"] = finding.fix;
    root["findings"].push_back(std::move(entry));
  }
  // Texts come from other machines; what is not UTF-8 in them is replaced, not thrown at.
  return root.dump(2, ' ', false, Json_::error_handler_t::replace) + "\n";
}

}  // namespace railhead::perf
