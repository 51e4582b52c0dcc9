// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/verdict_counts.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::op {

VerdictCounts CountPods(const std::string& space, const std::string& job,
                        const std::vector<verdict::PodFinding>& findings) {
  std::map<VerdictSeries, std::set<absl::string_view>> pods;
  for (const verdict::PodFinding& finding : findings) {
    VerdictSeries series = {finding.severity == Severity::kFail, space, job, finding.check};
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

VerdictCounts FairlyChosen(const VerdictCounts& counts, size_t most) {
  if (counts.size() <= most) return counts;
  std::map<absl::string_view, size_t> of_space;
  for (const auto& [series, pods] : counts) of_space[series.space] = 0;
  const size_t part = most / of_space.size();
  VerdictCounts chosen;
  for (const auto& entry : counts) {
    if (of_space[entry.first.space]++ < part) chosen.insert(entry);
  }
  for (const auto& entry : counts) {
    if (chosen.size() >= most) break;
    chosen.insert(entry);
  }
  return chosen;
}

}  // namespace railhead::op
