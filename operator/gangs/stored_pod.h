// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_STORED_POD_H_
#define RAILHEAD_OPERATOR_GANGS_STORED_POD_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/gangs/claims.h"
#include "operator/gangs/node_rules.h"
#include "operator/gangs/resources.h"
#include "operator/owner.h"
#include "operator/shared_value.h"

namespace railhead::op::gangs {

// What the pods of a gang mostly say alike.
struct GangTerms {
  std::string gang;  // the label's value
  int size = 0;      // of the gang, in pods
  Owner owner;       // empty for a pod without a controller
  std::string kind;  // of what it works for, or else of its owner (owners.h)
  // Which pods of several owners are one gang, and what it is called; empty: all of its owner.
  std::string group;
  std::string group_name;
  std::string attempt;  // which try of the group (workload.h)
  std::string require_level;
  std::string prefer_level;
  absl::Duration prefer_wait;  // for room in one domain of that level
  absl::Duration timeout = absl::InfiniteDuration();
  bool evictable = false;         // its owner says that an eviction is no failure
  bool fails_at_timeout = false;  // else its gate is taken away
  bool same_rails = false;        // it does without nodes that give other rails than the rest
  std::string pattern;
  int priority = 0;

  bool operator==(const GangTerms&) const = default;
  bool operator<(const GangTerms& other) const;  // any order
};

// What a pod says that belongs to a gang.
struct Membership {
  SharedValue<GangTerms> terms;
  std::optional<int> index;  // in its Job, or the like
  std::string dns_name;      // as other pods of its namespace find it; empty: it has none
  absl::Time created = absl::UnixEpoch();

  std::optional<size_t> gate;     // where in spec.schedulingGates ours is; nothing: it has none
  bool other_gates = false;       // somebody else holds it, too
  bool has_selector = false;      // it has a spec.nodeSelector, maybe an empty one
  bool one_on_a_node = false;     // it wants no other pod of its gang there
  bool released = false;          // by us: it says of which decision
  bool native = false;            // kube-scheduler places it, with its PodGroup
  bool wants_rank = false;        // such a pod, whose rank nobody has told it yet
  bool unschedulable = false;     // the scheduler finds no node for it
  NodeRules rules;                // as long as it has no node
  std::optional<int> rank;        // as we have said when its gate was taken away
  std::string unschedulable_why;  // its words
  std::string resource_version;   // of a released pod that has no node yet; else empty

  bool operator==(const Membership&) const = default;
};

// What is kept of a pod: what it takes of a node, and its gang.
struct StoredPod {
  std::string space;
  std::string name;
  std::string uid;
  std::string node;  // empty until it is bound
  bool succeeded = false;
  bool leaving = false;  // being deleted, or has failed
  bool failed = false;
  SharedValue<Resources> requests;  // nothing once it has ended
  Claims claims;                    // likewise
  Labels labels;                    // of a gang's pods, and of those that hold devices
  std::optional<Membership> member;
  // Of a pod that is there and no member: which group it belongs to nevertheless, as one that asks
  // for no RDMA (workload.h). Empty: none.
  std::string beside;

  bool operator==(const StoredPod&) const = default;
};

// Nothing for pods that are of no interest: those that neither have a node nor are of a gang.
std::optional<StoredPod> ReadStoredPod(const kube::Json& pod, const RdmaResources& rdma = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_STORED_POD_H_
