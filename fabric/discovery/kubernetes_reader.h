// SPDX-License-Identifier: Apache-2.0
//
// Reader of nodes and pods from Kubernetes.
#ifndef RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json/json_text.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Returns true if the devices of an extended resource, such as "rdma/hca", are HCAs.
using IsHca = std::function<bool(absl::string_view resource)>;

// Returns true for rdma/*.
bool IsOfRdma(absl::string_view resource);

// Reads the output of `kubectl get nodes -o json` or `kubectl get nodes,pods -A -o json`: lists or
// consecutive objects, including NicInterfaceNameTemplates (rail_names.h); ignores other kinds.
// GPUs are all resources whose name ends in "/gpu", HCAs those for which `is_hca` returns true. A
// node is unschedulable if it is cordoned or not ready; users' taints do not count, since jobs may
// tolerate them.
//
// InvalidArgument gives source, line and field.
absl::StatusOr<Observations> ReadKubernetes(const std::vector<JsonValue>& texts,
                                            absl::string_view source, const IsHca& is_hca);

// Returns true if a text is one of these.
bool IsKubernetes(const JsonValue& text);

// Returns long fields that need not be parsed; see ParseJsonTexts.
std::vector<absl::string_view> KubernetesFieldsNotRead();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_
