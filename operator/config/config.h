// SPDX-License-Identifier: Apache-2.0
//
// Configuration file of the operator: the administrator's settings for admission and the
// controllers. The CLI reads the RDMA resources from it, in the cluster's ConfigMap.
#ifndef RAILHEAD_OPERATOR_CONFIG_CONFIG_H_
#define RAILHEAD_OPERATOR_CONFIG_CONFIG_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op {

// The administrator's settings for pods that request RDMA.
struct InjectionConfig {
  // Variables for each such container, unless the container sets them itself.
  std::map<std::string, std::string> environment;
  // MASTER_PORT: port on which rank 0 of a job listens.
  int rendezvous_port = 29500;
  // Namespaces whose pods the webhook does not receive and the operator ignores.
  std::set<std::string> excluded_namespaces = {};
  // The only namespaces in which the operator watches pods and writes; empty: all. Cannot be
  // combined with gangs, which book room that pods of any namespace may take.
  std::set<std::string> namespaces = {};
  // The leader scrapes the metrics of training pods and reports what is wrong with their jobs.
  bool verdicts = true;
  // Also report pods that did not pass admission.
  bool tell_missed_pods = true;
  // On some nodes, containers with RDMA devices may pin more memory than the node's agent may.
  bool memlock_raised = false;
  // Pods that request to start with their gang are gated; the leader places them.
  bool gangs = false;
  // Kinds of jobs (jobs/job.h) whose pods are gangs without a request.
  std::set<std::string> gang_kinds = {};
  // Smaller gangs may no longer overtake a gang that has waited for this time; infinite: they
  // always may.
  absl::Duration gang_reserve_after = absl::Minutes(10);
  // Resources that are RDMA devices. Pods that request none of them are ignored.
  RdmaResources rdma_resources = {};
  // The leader keeps the FabricTopology's status equal to the fabric...
  bool topology = false;
  // ...and publishes the fabric as node labels and objects of other schedulers.
  bool publish_topology = false;
};

// Parses YAML or JSON:
//
//   environment: {NCCL_IB_TC: "106"}   # optional; values are scalars, used as written
//   rendezvousPort: 29500              # optional
//   excludedNamespaces: [kube-system]  # optional
//   namespaces: [team-a, team-b]       # optional, default all; not with gangs
//   verdicts: true                     # optional, default true
//   tellMissedPods: true               # optional, default true
//   memlockRaised: true                # optional, default false
//   gangs: true                        # optional, default false
//   gangKinds: [JobSet]                # optional; kinds whose pods are gangs without a request
//   gangReserveAfter: 10m              # optional; "never": smaller gangs may always overtake
//   rdmaResources: [rdma/*]            # optional; resource names, or prefixes followed by '*'
//   topology: true                     # optional, default false
//   publishTopology: true              # optional, default false; requires topology
//
// An empty text is an empty configuration. Returns InvalidArgument with `source`, line, field and
// allowed values. Rejects unknown fields, invalid variable names, and variables that the operator
// computes itself (RANK, ...).
absl::StatusOr<InjectionConfig> ParseInjectionConfig(absl::string_view text,
                                                     absl::string_view source);

// Parses a file of at most 1 MiB.
absl::StatusOr<InjectionConfig> LoadInjectionConfig(const std::string& path);

// Returns the RDMA resources in the operator's ConfigMap, which the chart creates; nullopt for any
// other object, and for a configuration that the operator would reject.
std::optional<RdmaResources> ReadRdmaResources(const kube::Json& config_map);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONFIG_CONFIG_H_
