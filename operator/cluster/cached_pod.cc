// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/cached_pod.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/objects/pod_bounds.h"
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

void PodReader::Share(const kube::Json& pod, gangs::StoredPod& held) {
  const gangs::PodExcess sizes = gangs::ExcessOf(pod);
  held.requests = requests_.Share(held.requests);
  held.labels = held.labels.SharedIn(labels_);
  const auto claims = claims_.Share(held.claims, held.space, sizes.claims_bytes);
  held.claims = claims ? *claims : gangs::WidestClaims();
  if (!held.member) return;
  held.member->terms = terms_.Share(held.member->terms);
  const auto rules = rules_.Share(held.member->rules, held.space, sizes.rules_bytes);
  held.member->rules = rules ? *rules : gangs::ReadHostname(pod["spec"]);
  if ((!claims || !rules) && held.member->too_large.empty()) {
    held.member->too_large = absl::StrCat(
        "the pods of namespace ", held.space, " have different large ",
        rules ? "spec.affinity.podAntiAffinity" : "spec.affinity.nodeAffinity", ", of which the ",
        "operator keeps at most ", kShareOfRules.most_of_one >> 20U,
        " MiB for a namespace; select nodes and pods by labels instead of lists of values");
  }
}

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
    if (held) Share(pod, *held);
    read.held = Keep(before->held, std::move(held));
  }
  if (read == none) return std::nullopt;
  return read;
}

}  // namespace railhead::op
