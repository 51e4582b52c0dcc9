// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/preflight.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/finding.h"

namespace railhead::perf {

using Json_ = nlohmann::ordered_json;

void PreflightReport::Add(const rhFinding_t& finding) {
  findings_.push_back({static_cast<Severity>(finding.verdict), finding.check, finding.where,
                       finding.value, finding.fix});
  Json_ entry = ToJson(findings_.back());
  entry["verdict"] = entry["severity"];
  entry["rail"] = finding.rail >= 0 ? Json_(finding.rail) : Json_(nullptr);
  entry["device"] = finding.device;
  entry["transport"] = finding.transport;
  entry["ranks"] = std::vector<int>(finding.ranks, finding.ranks + finding.rank_count);
  entry["where"] = entry["object"];
  entry["value"] = entry["observed"];
  entries_.push_back(std::move(entry));
}

std::string PreflightReport::Table(int ranks) const {
  const auto count = [this](Severity severity) {
    return absl::StrCat(Count(findings_, severity), " ", SeverityName(severity));
  };
  return absl::StrCat("# railhead-perf --preflight: ", ranks, " rank(s)\n",
                      FindingsTable(findings_), "# ", count(Severity::kOk), ", ",
                      count(Severity::kNote), ", ", count(Severity::kWarn), ", ",
                      count(Severity::kFail), "\n");
}

std::string PreflightReport::Json(int ranks) const {
  Json_ root;
  root["ranks"] = ranks;
  root["verdict"] = std::string(SeverityName(worst()));
  root["findings"] = entries_;
  // Texts come from other machines; what is not UTF-8 in them is replaced, not thrown at.
  return root.dump(2, ' ', false, Json_::error_handler_t::replace) + "\n";
}

}  // namespace railhead::perf
