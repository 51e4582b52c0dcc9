// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_CONFIG_H_
#define RAILHEAD_OPERATOR_CONFIG_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/rdma_resources.h"

namespace railhead::op {

// What the administrator decides about the environment of pods that ask for RDMA.
struct InjectionConfig {
  // Variables for every such container, unless it sets them itself.
  std::map<std::string, std::string> environment;
  // MASTER_PORT: where rank 0 of a job listens.
  int rendezvous_port = 29500;
  // Whose pods never reach the webhook, and are nobody's business here.
  std::set<std::string> excluded_namespaces = {};
  // The replica that leads asks training pods how they run, and tells what is wrong with their
  // jobs.
  bool verdicts = true;
  // Whether that is told of pods that did not pass our admission.
  bool tell_missed_pods = true;
  // Whoever holds RDMA devices may pin more than its node's agent may, on some nodes.
  bool memlock_raised = false;
  // Pods that ask to start with their gang are gated, and placed by the replica that leads.
  bool gangs = false;
  // Kinds of jobs (gangs/workload.h) whose pods need not ask for it.
  std::set<std::string> gang_kinds = {};
  // A gang that has waited for so long is not overtaken any more by smaller ones; infinite: it may
  // be for ever.
  absl::Duration gang_reserve_after = absl::Minutes(10);
  // Which resources are RDMA devices; what asks for none of them is not looked at.
  RdmaResources rdma_resources = {};
  // The replica that leads keeps the FabricTopology's status as the fabric is...
  bool topology = false;
  // ...and publishes it as labels of nodes and objects of other schedulers.
  bool publish_topology = false;
};

// Reads YAML or JSON:
//
//   environment: {NCCL_IB_TC: "106"}   # optional; values are scalars, taken as they are written
//   rendezvousPort: 29500              # optional
//   excludedNamespaces: [kube-system]  # optional
//   verdicts: true                     # optional, true by default
//   tellMissedPods: true               # optional, true by default
//   memlockRaised: true                # optional, false by default
//   gangs: true                        # optional, false by default
//   gangKinds: [JobSet]                # optional; whose pods are gangs without asking
//   gangReserveAfter: 10m              # optional; "never": smaller gangs may always overtake
//   rdmaResources: [rdma/*]            # optional; names of resources, or beginnings and '*'
//   topology: true                     # optional, false by default
//   publishTopology: true              # optional, false by default; needs topology
//
// An empty text is an empty configuration. InvalidArgument names `source`, line, field and what it
// may be: unknown fields, names that are no environment variables, and variables that the operator
// computes itself (RANK, ...) are refused.
absl::StatusOr<InjectionConfig> ParseInjectionConfig(absl::string_view text,
                                                     absl::string_view source);

// The same from a file of at most 1 MiB.
absl::StatusOr<InjectionConfig> LoadInjectionConfig(const std::string& path);

// The RDMA resources in the ConfigMap that the chart makes for the operator; nullopt for another
// object, and for one that the operator would refuse.
std::optional<RdmaResources> ReadRdmaResources(const kube::Json& config_map);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONFIG_H_
