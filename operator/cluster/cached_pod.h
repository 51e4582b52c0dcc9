// SPDX-License-Identifier: Apache-2.0
//
// A Pod as a replica keeps it, and its reader. It is read once from each object. Pure.
#ifndef RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_
#define RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kube/json.h"
#include "operator/gangs/stored_pod.h"
#include "operator/rdma_resources.h"
#include "operator/shared_value.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// What the readers of pods look at; a part is null if its reader ignores the pod. A change of one
// part leaves the other where it is in memory, so that two addresses compare as two values do.
struct CachedPod {
  std::shared_ptr<const verdict::PodFacts> facts;  // for the verdict
  std::shared_ptr<const gangs::StoredPod> held;    // for gangs: what it holds, and its gang

  bool operator==(const CachedPod&) const = default;
};

struct PodReading {
  RdmaResources rdma_resources = {};
  std::set<std::string> excluded_namespaces = {};  // whose pods the verdict ignores
  bool verdicts = false;
  bool gangs = false;
};

// Not thread-safe; what it returns is.
class PodReader {
 public:
  explicit PodReader(PodReading reading) : reading_(std::move(reading)) {}

  // `before` is the pod's last value; null if there is none. Returns nothing for a pod that no
  // reader looks at.
  std::optional<CachedPod> Read(const kube::Json& pod, const CachedPod* before);

 private:
  const PodReading reading_;
  // The pods of a job have these alike.
  verdict::ListPool<verdict::ContainerFacts> containers_;
  ValuePool<std::set<std::string>> interfaces_;
  ValuePool<gangs::Resources> requests_;
  ValuePool<gangs::GangTerms> terms_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CACHED_POD_H_
