// SPDX-License-Identifier: Apache-2.0
//
// What `railhead doctor` knows of a cluster: values read from objects of the API, a few hundred
// bytes for each. What is strange in an object is as if it were not there.
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
#include "kube/json.h"
#include "operator/gangs/gang.h"
#include "operator/profiles/stored_profile.h"
#include "operator/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::cli::doctor {

// What the diagnosis is about.
struct Scope {
  enum class Kind { kCluster, kNode, kJob };
  Kind kind = Kind::kCluster;
  std::string space;  // of a job
  std::string name;   // of a node or job
};

// A call that got no answer.
struct Unread {
  std::string verb;      // "list"
  std::string resource;  // "nodes", "deployments.apps"
  std::string space;     // empty: all namespaces
  bool denied = false;   // for want of a right; else `error` says why
  std::string error;
};

// A Deployment or DaemonSet of the chart.
struct Workload {
  std::string kind;  // "Deployment"
  std::string space;
  std::string name;
  std::string release;    // of Helm
  std::string component;  // "operator", "device-plugin" or "memlock"
  std::string version;    // of the chart
  int64_t wanted = 0;     // pods
  int64_t made = 0;
  int64_t updated = 0;  // of the latest template
  int64_t ready = 0;
};

// A pod of one of them.
struct ComponentPod {
  std::string space;
  std::string name;
  std::string node;
  std::string release;
  std::string component;
  std::string image;
  bool ready = false;
  int64_t restarts = 0;
  std::string trouble;  // "CrashLoopBackOff: ...", or the scheduler's words; empty: none
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
  bool ready = false;                                   // by its kubelet
  // The condition that the agent writes; nothing: none.
  std::optional<bool> rails_ready;
  std::string rails_message;
  int64_t gpus = 0;  // by the agent
};

// An Event of an agent or of the operator.
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
  std::vector<std::string> conflicts;  // messages, each with what to do
  int64_t conflict_count = 0;
};

struct RdmaPod {
  std::shared_ptr<const op::verdict::PodFacts> facts;  // never null
  // Since when the scheduler has found no node for it.
  absl::Time waits_since = absl::InfiniteFuture();
};

struct Evidence {
  absl::Time now;           // by this machine's clock
  std::string version;      // of this program
  std::string unreachable;  // why the API server does not answer; empty: it does
  std::vector<Unread> unread;
  op::RdmaResources rdma;  // by the operator's configuration, where it can be read
  std::vector<Workload> workloads;
  std::vector<ComponentPod> components;
  std::vector<WebhookConfiguration> webhooks;
  std::vector<Crd> crds;
  std::vector<Leader> leaders;
  std::map<std::string, Node> nodes;   // by name
  std::map<std::string, Node> others;  // outside of the scope, which pods may go to all the same
  std::vector<op::StoredProfile> profiles;
  std::vector<Told> events;
  std::vector<Report> reports;
  std::optional<Topology> topology;
  std::vector<RdmaPod> pods;                   // that ask for RDMA
  std::vector<op::gangs::PodValue> gang_pods;  // that are members of a gang
};

// Each of one object. Those that return an optional return nothing for an object of no interest.
std::optional<Workload> ReadWorkload(const kube::Json& object, const std::string& kind);
std::optional<ComponentPod> ReadComponentPod(const kube::Json& pod);
std::optional<WebhookConfiguration> ReadWebhookConfiguration(const kube::Json& object);
Crd ReadCrd(const kube::Json& object);
std::optional<Leader> ReadLeader(const kube::Json& lease);
Node ReadNode(const kube::Json& node, const op::RdmaResources& rdma);
std::optional<Told> ReadEvent(const kube::Json& event);
Report ReadReport(const kube::Json& object);
Topology ReadTopology(const kube::Json& object);
// Adds what is of interest of a pod that is none of the chart's.
void AddPod(const kube::Json& pod, Evidence& evidence);

// Whether all of a resource ("nodes", "deployments.apps") is in the evidence.
bool IsRead(absl::string_view resource, const Evidence& evidence);

// Leaves what a scope is about. NotFound when there is no such node or job.
absl::StatusOr<Evidence> Narrow(Evidence evidence, const Scope& scope);

}  // namespace railhead::cli::doctor

#endif  // RAILHEAD_CLI_DOCTOR_EVIDENCE_H_
