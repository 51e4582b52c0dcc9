// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/node_facts.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "fabric/node_facts/names.h"
#include "fabric/node_facts/reader.h"
#include "operator/objects/quantity.h"

namespace railhead::op::verdict {
namespace {

using kube::FindPath;
using kube::Json;
using kube::StringAt;

std::map<std::string, int64_t> DevicesOf(const Json& node, const RdmaResources& rdma,
                                         absl::string_view field) {
  std::map<std::string, int64_t> devices;
  const Json* resources = FindPath(node, {"status", field});
  if (resources == nullptr || !resources->is_object()) return devices;
  for (const auto& [name, quantity] : resources->items()) {
    if (!rdma.Contains(name)) continue;
    devices[name] = static_cast<int64_t>(std::min(ParseQuantity(quantity).value_or(0), 1e9));
  }
  return devices;
}

// Components that add nodes on demand identify a node's machine by its provider ID (Cluster API,
// the cluster autoscaler and Karpenter do). Distributions that set one on every node of a fixed
// cluster do not have such pools.
bool IsOfAPool(const Json& node) {
  const std::string id = StringAt(node, {"spec", "providerID"});
  if (id.empty()) return false;
  constexpr absl::string_view kFixed[] = {"k3s://", "kind://", "minikube://", "rke2://"};
  return std::none_of(std::begin(kFixed), std::end(kFixed),
                      [&id](absl::string_view prefix) { return absl::StartsWith(id, prefix); });
}

void ReadAnnotation(const Json& node, NodeFacts& facts) {
  const std::string text =
      StringAt(node, {"metadata", "annotations", fabric::kNodeFactsAnnotation});
  if (text.empty()) return;
  absl::StatusOr<fabric::NodeFacts> read =
      fabric::ReadNodeFacts(text, StringAt(node, {"metadata", "name"}));
  if (!read.ok()) {
    facts.fault = std::string(read.status().message());  // the topology reports it
    return;
  }
  facts.announced = true;
  facts.rails = SharedList(std::move(read->rails));
  facts.gpus = read->gpus;
  facts.gpu_direct_trouble = std::move(read->gpu_direct_trouble);
}

}  // namespace

NodeFacts NodeFactsOf(const Json& node, const RdmaResources& rdma) {
  NodeFacts facts;
  facts.allocatable = DevicesOf(node, rdma, "allocatable");
  facts.capacity = DevicesOf(node, rdma, "capacity");
  ReadAnnotation(node, facts);
  facts.of_a_pool = IsOfAPool(node);
  facts.link_layer = StringAt(node, {"metadata", "labels", "railhead.io/link-layer"});
  facts.gpu_direct = StringAt(node, {"metadata", "labels", "railhead.io/gpudirect"});
  const std::string memlock = StringAt(node, {"metadata", "labels", "railhead.io/memlock-bytes"});
  double bytes = 0;
  if (memlock == "unlimited") {
    facts.memlock = std::numeric_limits<double>::infinity();
  } else if (absl::SimpleAtod(memlock, &bytes) && bytes >= 0) {
    facts.memlock = bytes;
  }
  return facts;
}

}  // namespace railhead::op::verdict
