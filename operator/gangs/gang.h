// SPDX-License-Identifier: Apache-2.0
//
// Gangs: pods that start together or not at all. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/cluster/stored_pod.h"
#include "placement/request.h"

namespace railhead::op::gangs {

using PodValue = std::shared_ptr<const StoredPod>;

// Node to which a pod was sent, possibly not yet visible in its object.
struct Promise {
  std::string node;
  std::string hostname;  // label of the node
  std::optional<int> rank;
  std::string placement;  // name of the decision

  bool operator==(const Promise&) const = default;
};
using Promises = std::map<std::string, Promise>;  // by the pod's uid

// A pod that has its node, or was sent to it.
struct Released {
  PodValue pod;
  std::string node;  // name; empty: unknown
  std::optional<int> rank;
  bool by_us = true;  // else it bypassed admission, or is placed alone or by the scheduler
};

struct Gang {
  std::string key;      // unique
  std::string lineage;  // equal for all attempts of a gang that is recreated
  std::string space;
  std::string name;  // for users: the owner's, or the label's value
  jobs::Owner owner;
  int size = 0;
  int priority = 0;
  absl::Time created;  // of its first pod
  // Creation of its last gated pod; if the gang is complete, it waits for room since then.
  absl::Time waits_since = absl::InfinitePast();

  std::vector<PodValue> gated;  // in rank order; without promised ones
  std::vector<Released> released;
  std::vector<Released> lost;  // placed by the operator, then failed or being deleted
  int succeeded = 0;
  int beside = 0;  // pods of it without RDMA; the operator does not place them
  // Maximum of each resource over the gated pods, whose templates may differ.
  SharedValue<Resources> requests;
  std::set<std::string> ended;  // uids of succeeded pods
  std::set<int> ended_ranks;    // ranks of succeeded pods, if known

  // Returns true if some pods were sent already, so all existed once. The others replace pods that
  // are gone, or were not reached by an earlier leader.
  bool begun() const;
};

// Returns the key of a member's gang. Gangs differ in name, namespace or owner.
std::string GangKeyOf(const StoredPod& pod);

// Returns all gangs of these pods in placement order: begun ones first, then by priority, then by
// age. `node_of_hostname`: node names by hostname label.
std::vector<Gang> GangsOf(const std::vector<PodValue>& pods, const Promises& promises,
                          const std::map<std::string, std::string>& node_of_hostname);

// Returns ranks without a pod: those never used by a succeeded pod first.
std::vector<int> FreeRanks(const Gang& gang);

// Returns the rank of each gated pod: its index in its Job, else the next of FreeRanks.
std::vector<int> RanksOf(const Gang& gang);

// Returns the DNS name of the pod with rank 0; empty if it has none or does not exist.
std::string MasterOf(const Gang& gang);

// Returns whether kube-scheduler has still to place pods of it, with its PodGroup.
bool WaitsInScheduler(const Gang& gang);

// Returns why the gated pods cannot be placed whatever the room, with the fix; empty if they can.
std::string WhyNotComplete(const Gang& gang);

// Returns whether a gated pod has more fields than are kept, so that WhyNotComplete names that.
bool IsTooLarge(const Gang& gang);

// Returns whether another program, such as Kueue, has chosen a node for each gated pod.
bool IsChosenByOthers(const Gang& gang);

// Returns the request of a complete gang's gated pods.
placement::PlacementRequest RequestOf(const Gang& gang, const RdmaResources& rdma);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_H_
