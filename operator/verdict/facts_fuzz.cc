// SPDX-License-Identifier: Apache-2.0
//
// Any text as the nodes of a cluster and the pods of a job in it: whatever they are, what is found
// is the same each time, and says what to do.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
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
  Cluster::Nodes nodes;
  for (const kube::Json& document : *documents) {
    if (kube::StringAt(document, {"kind"}) == "Node") {
      nodes[kube::StringAt(document, {"metadata", "name"})] =
          std::make_shared<const NodeFacts>(NodeFactsOf(document, RdmaResources()));
    } else if (std::optional<PodFacts> pod = PodFactsOf(document, RdmaResources());
               pod.has_value()) {
      Require(!pod->terms->containers.empty());
      JudgedPod& judged = job.pods.emplace_back();
      judged.pod = std::make_shared<const PodFacts>(*std::move(pod));
      judged.silence = kSilence;
    }
  }
  const Cluster cluster(std::move(nodes), {{"p", {2, Fabric::kInfiniBand, RequireRdma::kFail}}});
  const std::vector<PodFinding> findings = Judge(job, cluster);
  Require(Judge(job, cluster) == findings);
  for (const PodFinding& finding : findings) {
    if (finding.pod.size() > 253) continue;  // no name that the API allows
    Require(FindingLine(finding).size() < 4096);
    Require(absl::StrContains(FindingLine(finding), "; "));
  }
}

}  // namespace
}  // namespace railhead::op::verdict

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::op::verdict::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
