// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/page_identity.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::op::verdict {

absl::Status CheckPageIsOf(const RuntimeReport& report, const PodFacts& pod) {
  bool named = false;
  for (const RankReport& rank : report.ranks) {
    if (!rank.start.has_value() || rank.start->pod.empty()) continue;
    named = true;
    if (rank.start->pod != pod.name) {
      return absl::FailedPreconditionError(
          absl::StrCat("the metrics at ", pod.address, ":", pod.metrics_port, ", scraped for pod ",
                       pod.name, ", are those of pod ", rank.start->pod));
    }
  }
  if (pod.host_network && !named && !report.ranks.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the metrics at ", pod.address, ":", pod.metrics_port, ", scraped for pod ", pod.name,
        " in the network of its node, name no pod in railhead_runtime_info; "
        "set RAILHEAD_POD in the pod"));
  }
  return absl::OkStatus();
}

}  // namespace railhead::op::verdict
