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
#include "operator/gangs/stored_pod.h"
#include "operator/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// The parts of a pod that its consumers need; null for a consumer that ignores the pod. A change of
// one part keeps the other at its address, so comparing addresses compares values.
struct CachedPod {
  std::shared_ptr<const verdict::PodFacts> facts;  // for the verdict
  std::shared_ptr<const gangs::StoredPod> held;    // for gangs: its requests and its gang

  bool operator==(const CachedPod&) const = default;
};

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

  // `before`: last value of the pod; null if none. Returns nullopt for a pod that no consumer
  // needs.
  std::optional<CachedPod> Read(const kube::Json& pod, const CachedPod* before);

 private:
  const PodReading reading_;
  // Shared by the pods of a job.
  ListPool<verdict::ContainerFacts> containers_;
  ValuePool<verdict::PodTerms> pod_terms_;
  ValuePool<gangs::Resources> requests_;
  ValuePool<gangs::GangTerms> terms_;
  ValuePool<gangs::Claims> claims_;
  ValuePool<gangs::NodeRules> rules_;
  LabelSet::Pool labels_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_
