// SPDX-License-Identifier: Apache-2.0
//
// A cached Pod and its reader. Each object is parsed once. Pure.
#ifndef RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_
#define RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/shared_value.h"
#include "kube/json.h"
#include "operator/cluster/fair_share.h"
#include "operator/cluster/namespace_pool.h"
#include "operator/cluster/stored_pod.h"
#include "operator/objects/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// The parts of a pod that its consumers need; null for a consumer that ignores the pod. A change of
// one part keeps the other at its address, so comparing addresses compares values.
struct CachedPod {
  std::shared_ptr<const verdict::PodFacts> facts;  // for the verdict
  std::shared_ptr<const gangs::StoredPod> held;    // for gangs: its requests and its gang

  bool operator==(const CachedPod&) const = default;
};

// Memory of the large rules of pods about nodes, and that of their claims, in bytes.
inline constexpr FairShare kShareOfRules = {
    .most = 16U << 20U, .most_of_one = 4U << 20U, .reserve = 4U << 20U, .small = 256U << 10U};

struct PodReading {
  RdmaResources rdma_resources = {};
  std::set<std::string> excluded_namespaces = {};  // pods there are ignored by the verdict
  bool verdicts = false;
  bool gangs = false;
};

// Parses pods. Not thread-safe; the returned values are.
class PodReader {
 public:
  explicit PodReader(PodReading reading) : reading_(std::move(reading)) {}

  // Bounds what is kept of the pods of a namespace: a gang whose rules exceed it is not placed.
  //
  // `before`: last value of the pod; null if none. Returns nullopt for a pod that no consumer
  // needs.
  std::optional<CachedPod> Read(const kube::Json& pod, const CachedPod* before);

 private:
  // Shares the parts of the value with other pods, or drops what exceeds the bound.
  void Share(const kube::Json& pod, gangs::StoredPod& held);

  const PodReading reading_;
  // Shared by the pods of a job.
  ListPool<verdict::ContainerFacts> containers_;
  ValuePool<verdict::PodTerms> pod_terms_;
  ValuePool<gangs::Resources> requests_;
  ValuePool<gangs::GangTerms> terms_;
  NamespacePool<gangs::Claims> claims_{kShareOfRules};
  NamespacePool<gangs::NodeRules> rules_{kShareOfRules};
  LabelSet::Pool labels_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_
