// SPDX-License-Identifier: Apache-2.0
//
// What Kubernetes knows of nodes and of what pods hold.
#ifndef RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/json_text.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads what `kubectl get nodes -o json` or `kubectl get nodes,pods -A -o json` prints: lists, or
// objects one after the other, and among them NicInterfaceNameTemplates (rail_names.h); of other
// kinds nothing is read. GPUs are all resources whose name
// ends in "/gpu", HCAs are rdma/hca. A node counts as unschedulable when it is cordoned or not
// ready; taints of users' own do not count, since a job may tolerate them.
//
// InvalidArgument says source, line and field.
absl::StatusOr<Observations> ReadKubernetes(const std::vector<JsonValue>& texts,
                                            absl::string_view source);

// Whether a text is one of these.
bool IsKubernetes(const JsonValue& text);

// Fields of theirs that are long and not read; see ParseJsonTexts.
std::vector<absl::string_view> KubernetesFieldsNotRead();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_KUBERNETES_READER_H_
