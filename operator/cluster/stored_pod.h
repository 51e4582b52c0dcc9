// SPDX-License-Identifier: Apache-2.0
//
// Cached fields of a Pod for gangs, and their reader: what it uses of a node, and its membership in
// a gang. Also used by `railhead doctor` and `railhead why`.
#ifndef RAILHEAD_OPERATOR_CLUSTER_STORED_POD_H_
#define RAILHEAD_OPERATOR_CLUSTER_STORED_POD_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/shared_value.h"
#include "jobs/job.h"
#include "kube/json.h"
#include "operator/objects/claims.h"
#include "operator/objects/label_set.h"
#include "operator/objects/node_rules.h"
#include "operator/objects/resources.h"

namespace railhead::op::gangs {

// Fields that the pods of a gang mostly share.
struct GangTerms {
  std::string gang;                            // value of the label
  int size = 0;                                // of the gang, in pods
  jobs::Owner owner;                           // empty: no controller
  const jobs::Kind* kind = &jobs::KindOf({});  // of its job, else of its owner
  // Key and name of a gang of several owners' pods; empty: all pods of its owner.
  std::string group;
  std::string group_name;
  std::string attempt;  // attempt of the group (jobs/job.h)
  std::string require_level;
  std::string prefer_level;
  absl::Duration prefer_wait;  // maximum wait for room in one domain of that level
  absl::Duration timeout = absl::InfiniteDuration();
  bool evictable = false;         // its owner declares that an eviction is not a failure
  bool fails_at_timeout = false;  // else its gate is removed
  bool same_rails = false;        // waits instead of using nodes with different rails
  std::string pattern;
  int priority = 0;

  bool operator==(const GangTerms&) const = default;
  bool operator<(const GangTerms& other) const;  // arbitrary order
};

// Fields of a member of a gang.
struct Membership {
  SharedValue<GangTerms> terms;
  // Why its fields are not kept, with the fix (pod_bounds.h): such a pod is not placed. Empty:
  // kept.
  std::string too_large;
  std::optional<int> index;  // in its Job or similar
  std::string dns_name;      // for pods of its namespace; empty: none
  absl::Time created = absl::UnixEpoch();

  std::optional<size_t> gate;    // index of kGate in spec.schedulingGates; nullopt: none
  bool other_gates = false;      // gates of other controllers
  bool has_selector = false;     // has a spec.nodeSelector, possibly empty
  bool one_on_a_node = false;    // accepts no other pod of its gang on its node
  bool released = false;         // by the operator: has the decision's annotation
  bool native = false;           // kube-scheduler places it, with its PodGroup
  bool wants_rank = false;       // such a pod, without a rank yet
  bool unschedulable = false;    // the scheduler finds no node for it
  SharedValue<NodeRules> rules;  // while it has no node
  std::optional<int> rank;       // as assigned when its gate was removed
  SharedValue<std::string> unschedulable_why;  // message of the scheduler
  SharedValue<std::string> resource_version;   // of a released pod without a node; else empty

  bool operator==(const Membership&) const = default;
};

// Cached part of a pod: its use of a node, and its gang.
struct StoredPod {
  std::string space;
  std::string name;
  std::string uid;
  std::string node;  // empty until bound
  bool succeeded = false;
  bool leaving = false;  // being deleted, or failed
  bool failed = false;
  SharedValue<Resources> requests;  // empty once it has ended
  SharedValue<Claims> claims;       // likewise
  LabelSet labels;                  // of gangs' pods, and of pods with devices
  std::optional<Membership> member;
  // For an existing pod that is not a member, because it requests no RDMA: the group it belongs to
  // (jobs/job.h). Empty: none.
  std::string beside;

  bool operator==(const StoredPod&) const = default;
};

// Returns nullopt for irrelevant pods: those neither in a gang nor beside one that have no node or
// have ended. Pods are untrusted input, so the size of the result is bounded (pod_bounds.h). Fields
// beyond it are dropped: the requests still count on the pod's node, which takes no pods of gangs
// if the pod's claims are dropped.
std::optional<StoredPod> ReadStoredPod(const kube::Json& pod, const RdmaResources& rdma = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_CLUSTER_STORED_POD_H_
