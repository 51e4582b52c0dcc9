// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/verdict_counts.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::op {

VerdictCounts CountPods(const std::string& space, const std::string& job,
                        const std::vector<verdict::Finding>& findings) {
  std::map<VerdictSeries, std::set<absl::string_view>> pods;
  for (const verdict::Finding& finding : findings) {
    const verdict::ReasonRow& row = verdict::RowOf(finding.reason);
    VerdictSeries series = {finding.severity == verdict::Severity::kWarning, space, job,
                            std::string(row.name)};
    if (finding.place.has_value()) {
      series.rail = absl::StrCat(finding.place->rail);
      series.node = finding.place->node;
    }
    pods[series].insert(finding.pod);
  }
  VerdictCounts counts;
  for (const auto& [series, names] : pods) counts[series] = names.size();
  return counts;
}

}  // namespace railhead::op
