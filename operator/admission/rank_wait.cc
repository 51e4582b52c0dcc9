// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/rank_wait.h"

#include "absl/strings/str_cat.h"
#include "operator/admission/init_container.h"
#include "operator/admission/lists.h"
#include "operator/admission/volume.h"
#include "operator/objects/names.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

constexpr char kContainer[] = "railhead-wait-for-rank";
constexpr char kVolume[] = "railhead-rank";
constexpr char kFolder[] = "/run/railhead-rank";
constexpr char kFile[] = "rank";
// Longer than kube-scheduler waits for a group of which a part has nodes.
constexpr char kSeconds[] = "1800";

constexpr char kScript[] =
    "echo 'railhead: waiting for the rank, which is known when all pods of the gang have nodes'\n"
    "waited=0\n"
    "until [ -s \"$1\" ]; do\n"
    "  [ \"$waited\" -lt \"$2\" ] || {\n"
    "    echo \"railhead: no rank (annotation railhead.io/rank) within $2 s: check that all pods "
    "of the gang have nodes, and that the operator runs with operator.gangs.enabled\" >&2\n"
    "    exit 1\n"
    "  }\n"
    "  waited=$((waited + 1))\n"
    "  sleep 1\n"
    "done";

}  // namespace

absl::StatusOr<std::optional<Json>> AddRankWait(const std::string& served, Draft& pod) {
  const absl::StatusOr<const Json*> volumes = ListAt(pod, "/spec/volumes");
  if (!volumes.ok()) return volumes.status();
  const Json* volume = Named(*volumes, kVolume);
  if (volume != nullptr && Find(*volume, "downwardAPI") == nullptr) {
    pod.Warn(absl::StrCat("the pod does not wait for its rank: it already has a volume ", kVolume,
                          ": rename it"));
    return std::nullopt;
  }
  const Json& container = *pod.At(served);
  Json wait = InitContainer(
      kContainer, StringAt(container, {"image"}),
      {"/bin/sh", "-euc", kScript, "wait", absl::StrCat(kFolder, "/", kFile), kSeconds},
      {{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}}, container, *pod.At("/spec"));
  if (const Json* policy = Find(container, "imagePullPolicy"); policy != nullptr) {
    wait["imagePullPolicy"] = *policy;
  }
  const Json rank = {{"path", kFile},
                     {"fieldRef",
                      {{"apiVersion", "v1"},
                       {"fieldPath", absl::StrCat("metadata.annotations['", gangs::kRank, "']")}}}};
  absl::Status added = AddVolume(
      {{"name", kVolume}, {"downwardAPI", {{"items", Json::array({rank})}}}}, {}, {}, pod);
  if (!added.ok()) return added;
  return wait;
}

}  // namespace railhead::op
