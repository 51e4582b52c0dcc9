// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/node_labeller.h"

#include <utility>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "placement/topology/published.h"

namespace railhead::topology {
namespace {

// The node was replaced or changed since: the watch will show it.
bool IsStale(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsAborted(status);
}

}  // namespace

NodeLabeller::NodeLabeller(kube::Api* api, std::function<bool()> leads)
    : api_(api), leads_(std::move(leads)) {}

absl::Status NodeLabeller::Write(const std::vector<Node>& nodes,
                                 const std::map<std::string, Labels>& wanted) {
  std::map<std::string, Written> written;
  absl::Status trouble;
  for (const Node& node : nodes) {
    const auto own = wanted.find(node.name);
    const Labels labels = own == wanted.end() ? Labels() : own->second;
    if (labels == node.published) continue;
    Written now = {node.uid, labels, node.published};
    const auto before = written_.find(node.name);
    const bool done = before != written_.end() && before->second.uid == now.uid &&
                      before->second.wanted == now.wanted && before->second.found == now.found;
    if (!done) {
      if (!trouble.ok() && !absl::IsInvalidArgument(trouble)) continue;
      if (!leads_()) return absl::CancelledError("this replica lost leadership");
      const absl::Status applied =
          kube::Apply(*api_, {"v1", "nodes", "", node.name}, kManager,
                      kube::Json(NodeWithLabels(node.name, node.uid, labels)))
              .status();
      if (IsStale(applied)) continue;
      trouble.Update(applied);
      if (!applied.ok()) continue;
    }
    written[node.name] = std::move(now);
  }
  written_ = std::move(written);
  return trouble;
}

}  // namespace railhead::topology
