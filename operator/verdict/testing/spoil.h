// SPDX-License-Identifier: Apache-2.0
//
// Changes to a Scene that several cases share.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_SPOIL_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_SPOIL_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict::testing {

// Applies a change to all pods.
inline void All(Scene& scene, const std::function<void(int)>& change) {
  for (int pod = 0; pod < static_cast<int>(scene.pods.size()); ++pod) change(pod);
}

inline RankReport& Rank(Scene& scene, int pod) {
  return scene.reports[static_cast<size_t>(pod)].ranks[0];
}

inline void EditGiven(RankReport& rank, const std::function<void(std::vector<GivenRail>&)>& edit) {
  rank.given.Change(edit);
}

inline void EditUsed(RankReport& rank, const std::function<void(std::vector<UsedRail>&)>& edit) {
  rank.used.Change(edit);
}

// Makes a pod request this number of HCAs and of GPUs.
inline void AsksFor(Scene& scene, int pod, int hcas) {
  scene.Container(pod)["resources"]["limits"]["rdma/hca"] = absl::StrCat(hcas);
  scene.Container(pod)["resources"]["limits"]["nvidia.com/gpu"] = absl::StrCat(hcas);
}

// Makes a rail unusable for one rank, so that no rank uses it.
inline void BreakRail(Scene& scene, int pod, int rail, const char* trouble, const char* cause) {
  const auto at = static_cast<size_t>(rail);
  EditGiven(Rank(scene, pod), [&](std::vector<GivenRail>& rails) {
    rails[at].trouble = trouble;
    rails[at].cause = cause;
  });
  All(scene, [&](int each) {
    EditUsed(Rank(scene, each),
             [&](std::vector<UsedRail>& rails) { rails.erase(rails.begin() + rail); });
    Rank(scene, each).degraded = absl::StrCat("RDMA on 7 of 8 rails: rank ", pod);
  });
}

// Takes a rail of the pod down: its rank loses all peers there, and the two ring neighbours
// `beside` lose one.
inline void LoseRail(Scene& scene, int pod, int rail, const std::vector<int>& beside) {
  const auto at = static_cast<size_t>(rail);
  EditUsed(Rank(scene, pod), [&](std::vector<UsedRail>& rails) {
    rails[at].up = false;
    rails[at].lost_peers = rails[at].peers;
  });
  for (const int peer : beside) {
    EditUsed(Rank(scene, peer), [&](std::vector<UsedRail>& rails) {
      rails[at].up = false;
      ++rails[at].lost_peers;
    });
  }
}

inline void FallBackToTcp(Scene& scene, const std::string& why) {
  All(scene, [&](int pod) {
    Rank(scene, pod).start->transport = "tcp";
    Rank(scene, pod).used = {UsedRail{0, "eth0", "tcp", true, 2, 0}};
    Rank(scene, pod).degraded = absl::StrCat("TCP instead of RDMA: ", why);
    Rank(scene, pod).memlock_least = 0;
    Rank(scene, pod).memlock_wanted = 0;
  });
}

inline void SetRail(Scene& scene, int node, int rail, bool usable, const std::string& reason) {
  kube::Json& text = scene.nodes[node]["metadata"]["annotations"]["railhead.io/node-facts"];
  kube::Json facts = kube::Json::parse(text.get<std::string>());
  facts["rails"][rail]["usable"] = usable;
  facts["rails"][rail]["reason"] = reason;
  text = facts.dump();
}

inline void Resource(Scene& scene, const char* field, const kube::Json& value) {
  for (kube::Json& node : scene.nodes) node["status"][field] = value;
}

// Makes the nodes members of a pool that grows on demand.
inline void OfAPool(Scene& scene) {
  for (kube::Json& node : scene.nodes) node["spec"]["providerID"] = "aws:///zone/i-0123456789";
}

// Makes a StatefulSet the owner: Kubernetes gives its pods no ranks.
inline void MakeStatefulSet(Scene& scene) {
  scene.kind = "StatefulSet";
  All(scene, [&](int pod) {
    kube::Json& metadata = scene.pods[pod]["metadata"];
    metadata["annotations"].erase("batch.kubernetes.io/job-completion-index");
    metadata["annotations"].erase("railhead.io/world-size");
    metadata["labels"]["controller-revision-hash"] = "train-1";
  });
}

inline constexpr char kNoRoom[] =
    "0/4 nodes are available: 4 Insufficient rdma/hca. preemption: 0/4";

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_SPOIL_H_
