// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/cached_pod.h"

#include <utility>

#include "operator/verdict/pod_facts.h"

namespace railhead::op {
namespace {

// Returns `before` if it has the same value as `now`.
template <typename T>
std::shared_ptr<const T> Keep(const std::shared_ptr<const T>& before, std::optional<T> now) {
  if (!now) return nullptr;
  if (before != nullptr && *before == *now) return before;
  return std::make_shared<const T>(*std::move(now));
}

}  // namespace

std::optional<CachedPod> PodReader::Read(const kube::Json& pod, const CachedPod* before) {
  const CachedPod none = {};
  if (before == nullptr) before = &none;
  CachedPod read;
  if (reading_.verdicts &&
      !reading_.excluded_namespaces.contains(kube::StringAt(pod, {"metadata", "namespace"}))) {
    std::optional<verdict::PodFacts> facts = verdict::PodFactsOf(pod, reading_.rdma_resources);
    if (facts) {
      verdict::PodTerms terms = *facts->terms;
      terms.containers = containers_.Share(terms.containers);
      facts->terms = pod_terms_.Share(std::move(terms));
    }
    read.facts = Keep(before->facts, std::move(facts));
  }
  if (reading_.gangs) {
    std::optional<gangs::StoredPod> held = gangs::ReadStoredPod(pod, reading_.rdma_resources);
    if (held) {
      held->requests = requests_.Share(held->requests);
      held->claims = claims_.Share(held->claims);
      held->labels = held->labels.SharedIn(labels_);
    }
    if (held && held->member) {
      held->member->terms = terms_.Share(held->member->terms);
      held->member->rules = rules_.Share(held->member->rules);
    }
    read.held = Keep(before->held, std::move(held));
  }
  if (read == none) return std::nullopt;
  return read;
}

}  // namespace railhead::op
