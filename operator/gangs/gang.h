// SPDX-License-Identifier: Apache-2.0
//
// Pods that start together, or not at all. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/stored_pod.h"
#include "placement/request.h"

namespace railhead::op::gangs {

using PodValue = std::shared_ptr<const StoredPod>;

// Where a pod was sent by a decision that its object may not show yet.
struct Promise {
  std::string node;
  std::string hostname;  // the node's label
  std::optional<int> rank;
  std::string placement;  // which decision

  bool operator==(const Promise&) const = default;
};
using Promises = std::map<std::string, Promise>;  // by the pod's uid

// A pod that has its node, or is on its way to it.
struct Released {
  PodValue pod;
  std::string node;  // its name; empty: nobody knows it
  std::optional<int> rank;
  bool by_us = true;  // else it has come past admission, or is placed alone, or by the scheduler
};

struct Gang {
  std::string key;      // unlike that of every other gang
  std::string lineage;  // the same for all tries of one whose controller makes it anew
  std::string space;
  std::string name;  // for people: the owner's, or the label's value
  Owner owner;
  int size = 0;
  int priority = 0;
  absl::Time created;  // of its first pod
  // Of its last gated pod: since then it waits for room, if it is complete.
  absl::Time waits_since = absl::InfinitePast();

  std::vector<PodValue> gated;  // in the order of their ranks; without those that are promised
  std::vector<Released> released;
  std::vector<Released> lost;  // that had a node from us, and have failed or are being deleted
  int succeeded = 0;
  int beside = 0;  // pods of it that ask for no RDMA, and are not ours to place
  // The most of each resource that any gated pod asks for: their templates may differ.
  SharedValue<Resources> requests;
  std::set<std::string> ended;  // uids of those
  std::set<int> ended_ranks;    // theirs, where it is known

  // We have sent some of it, so all of it was there once: the others take the places of pods that
  // went, or that a leader which ended had not come to.
  bool begun() const;
};

// Which gang a member is of: another name, namespace or owner is another gang.
std::string GangKeyOf(const StoredPod& pod);

// All gangs of these pods, in the order in which they are to be placed: those that have begun, then
// by priority, then the oldest. `node_of_hostname` are the names of nodes by their hostname label.
std::vector<Gang> GangsOf(const std::vector<PodValue>& pods, const Promises& promises,
                          const std::map<std::string, std::string>& node_of_hostname);

// The ranks that no pod has: those that no pod had which has succeeded before those that one had.
std::vector<int> FreeRanks(const Gang& gang);

// The rank that each gated pod gets: its index in its Job, or else the next of FreeRanks.
std::vector<int> RanksOf(const Gang& gang);

// The name in DNS of the pod with rank 0; empty: it has none, or there is no such pod.
std::string MasterOf(const Gang& gang);

// Whether kube-scheduler has still to place some of it, with its PodGroup.
bool WaitsInScheduler(const Gang& gang);

// Why the gang's gated pods cannot be placed whatever the room is, and what to do; empty: they can.
std::string WhyNotComplete(const Gang& gang);

// Whether somebody else, such as Kueue, has chosen a node for each of its gated pods.
bool IsChosenByOthers(const Gang& gang);

// What the gated pods of a complete gang ask for.
placement::PlacementRequest RequestOf(const Gang& gang, const RdmaResources& rdma);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_H_
