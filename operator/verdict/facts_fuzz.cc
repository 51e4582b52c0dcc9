// SPDX-License-Identifier: Apache-2.0
//
// Any text as the nodes of a cluster and the pods of a job in it: whatever they are, what is found
// is the same each time, and says what to do.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::op::verdict {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<std::vector<kube::Json>> documents = kube::ParseYaml(text);
  if (!documents.ok()) return;
  JobFacts job;
  ClusterFacts cluster;
  cluster.profiles["p"] = {2, Fabric::kInfiniBand, RequireRdma::kFail};
  for (const kube::Json& document : *documents) {
    if (kube::StringAt(document, {"kind"}) == "Node") {
      cluster.nodes[kube::StringAt(document, {"metadata", "name"})] = NodeFactsOf(document);
    } else if (std::optional<PodFacts> pod = PodFactsOf(document); pod.has_value()) {
      Require(!pod->containers.empty());
      job.pods.push_back({*std::move(pod), std::nullopt, true});
    }
  }
  const absl::Time now = absl::FromUnixSeconds(1767225600);
  const std::vector<Finding> findings = Judge(job, cluster, now);
  Require(Judge(job, cluster, now) == findings);
  for (const Finding& finding : findings) {
    if (finding.pod.size() > 253) continue;  // no name that the API allows
    Require(finding.message.size() < 4096);
    Require(absl::StrContains(finding.message, "; "));
  }
}

}  // namespace
}  // namespace railhead::op::verdict

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::op::verdict::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
