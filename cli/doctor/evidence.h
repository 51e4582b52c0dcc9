// SPDX-License-Identifier: Apache-2.0
//
// Data for `railhead doctor`: values read from API objects, a few hundred bytes each. Malformed
// fields are treated as absent.
#ifndef RAILHEAD_CLI_DOCTOR_EVIDENCE_H_
#define RAILHEAD_CLI_DOCTOR_EVIDENCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/access/release.h"
#include "kube/json.h"
#include "operator/gangs/gang.h"
#include "operator/objects/rdma_resources.h"
#include "operator/profiles/stored_profile.h"
#include "operator/verdict/facts.h"

namespace railhead::cli::doctor {

// Scope of a diagnosis.
struct Scope {
  enum class Kind { kCluster, kNode, kJob };
  Kind kind = Kind::kCluster;
  std::string space;  // of a job
  std::string name;   // of a node or job
};

// A failed call.
struct Unread {
  std::string verb;      // "list"
  std::string resource;  // "nodes", "deployments.apps"
  std::string space;     // empty: all namespaces
  bool denied = false;   // missing right; else see `error`
  std::string error;
};

// A Deployment or DaemonSet of the chart.
struct Workload {
  std::string kind;  // "Deployment"
  std::string space;
  std::string name;
  std::string component;  // "operator", "device-plugin" or "memlock"
  std::string version;    // of the chart
  int64_t wanted = 0;     // pods
  int64_t made = 0;
  int64_t updated = 0;  // of the latest template
  int64_t ready = 0;
};

// A pod of such a workload.
struct ComponentPod {
  std::string space;
  std::string name;
  std::string node;
  std::string component;
  std::string image;
  bool ready = false;
  int64_t restarts = 0;
  std::string trouble;  // "CrashLoopBackOff: ...", or the scheduler's message; empty: none
};

struct WebhookConfiguration {
  std::string name;
  absl::Time created = absl::InfinitePast();
  struct Webhook {
    std::string name;
    std::string bundle;  // PEM; empty: none
    std::string failure_policy;
  };
  std::vector<Webhook> webhooks;
};

struct Crd {
  std::string name;
  std::string version;  // of the chart
  bool established = false;
};

struct Leader {
  std::string space;
  std::string lease;
  std::string holder;  // empty: released
  absl::Time renewed = absl::InfinitePast();
  absl::Duration promised = absl::ZeroDuration();
};

struct Node {
  std::shared_ptr<const op::verdict::NodeFacts> facts;  // never null
  bool ready = false;                                   // as kubelet reports
  // Condition written by the agent; nullopt: absent.
  std::optional<bool> rails_ready;
  std::string rails_message;
  int64_t gpus = 0;  // as the agent reports
};

// An Event of an agent or the operator.
struct Told {
  std::string kind;  // of the object: "Node", "Pod", "Job"
  std::string space;
  std::string name;
  bool warning = false;
  std::string reason;
  std::string message;
  absl::Time at = absl::InfinitePast();
};

struct Report {
  std::string space;
  std::string name;
  std::vector<std::string> owner_uids;
  std::string owner;  // "job/train" of the first owner
  int64_t pods = 0;
  struct Reason {
    std::string reason;
    bool warning = false;
    int64_t pods = 0;
    std::vector<std::string> examples;
    std::string fix;
  };
  std::vector<Reason> reasons;
};

struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;
  std::string message;
};

struct Topology {
  std::vector<Condition> conditions;
  std::vector<std::string> conflicts;  // messages, each with its fix
  int64_t conflict_count = 0;
};

struct RdmaPod {
  std::shared_ptr<const op::verdict::PodFacts> facts;  // never null
  // Time since which the scheduler has found no node for it.
  absl::Time waits_since = absl::InfiniteFuture();
};

struct Evidence {
  absl::Time now;           // by the API server's clock
  std::string version;      // of this program
  std::string unreachable;  // why the API server does not respond; empty: it does
  std::vector<Unread> unread;
  std::vector<Release> releases;  // of the chart
  op::RdmaResources rdma;         // from the operator's configuration, if readable
  std::vector<Workload> workloads;
  std::vector<ComponentPod> components;
  std::vector<WebhookConfiguration> webhooks;
  std::vector<Crd> crds;
  std::vector<Leader> leaders;
  std::map<std::string, Node> nodes;   // by name
  std::map<std::string, Node> others;  // outside the scope, but pods may be scheduled there
  std::vector<op::StoredProfile> profiles;
  std::vector<Told> events;
  std::vector<Report> reports;
  std::optional<Topology> topology;
  std::vector<RdmaPod> pods;  // that request RDMA
  // Members of gangs, and pods beside them (StoredPod::beside), which count for a gang's size.
  std::vector<op::gangs::PodValue> gang_pods;
};

// Readers, one object each. An optional is nullopt for an irrelevant object.
std::optional<Workload> ReadWorkload(const kube::Json& object, const std::string& kind);
std::optional<ComponentPod> ReadComponentPod(const kube::Json& pod);
std::optional<WebhookConfiguration> ReadWebhookConfiguration(const kube::Json& object);
Crd ReadCrd(const kube::Json& object);
std::optional<Leader> ReadLeader(const kube::Json& lease);
Node ReadNode(const kube::Json& node, const op::RdmaResources& rdma);
std::optional<Told> ReadEvent(const kube::Json& event);
Report ReadReport(const kube::Json& object);
Topology ReadTopology(const kube::Json& object);
// Adds the relevant parts of a pod that is not the chart's.
void AddPod(const kube::Json& pod, Evidence& evidence);

// Drops the events of nodes and pods that no longer exist, or have ended.
void DropEventsOfGone(Evidence& evidence);

// Returns whether all of a resource ("nodes", "deployments.apps") is in the evidence.
bool IsRead(absl::string_view resource, const Evidence& evidence);

// Restricts the evidence to a scope. Returns NotFound if the node or job does not exist.
absl::StatusOr<Evidence> Narrow(Evidence evidence, const Scope& scope);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_EVIDENCE_H_
