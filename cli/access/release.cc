// SPDX-License-Identifier: Apache-2.0
#include "cli/access/release.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "kube/elements.h"
#include "kube/object_name.h"

namespace railhead::cli {
namespace {

using kube::Json;
using kube::StringAt;

std::string SpaceIn(const Json& object) {
  for (const Json& webhook : kube::ElementsAt(object, {"webhooks"})) {
    std::string space = StringAt(webhook, {"clientConfig", "service", "namespace"});
    if (!space.empty()) return space;
  }
  for (const Json& subject : kube::ElementsAt(object, {"subjects"})) {
    if (StringAt(subject, {"kind"}) == "ServiceAccount") return StringAt(subject, {"namespace"});
  }
  return "";
}

}  // namespace

std::optional<Release> ReleaseOf(const Json& object) {
  if (StringAt(object, {"metadata", "labels", "app.kubernetes.io/part-of"}) != "railhead") {
    return std::nullopt;
  }
  Release release = {SpaceIn(object),
                     StringAt(object, {"metadata", "labels", "app.kubernetes.io/instance"})};
  if (!kube::IsObjectName(release.space) || !kube::IsObjectName(release.name)) return std::nullopt;
  return release;
}

void AddRelease(std::optional<Release> release, std::vector<Release>& releases) {
  if (release && std::find(releases.begin(), releases.end(), *release) == releases.end()) {
    releases.push_back(*std::move(release));
  }
}

std::array<kube::ObjectRef, 2> ReleaseCollections() {
  return {{{"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "", ""},
           {"rbac.authorization.k8s.io/v1", "clusterrolebindings", "", ""}}};
}

absl::StatusOr<std::vector<Release>> FindReleases(kube::Api& api) {
  std::vector<Release> releases;
  for (const kube::ObjectRef& collection : ReleaseCollections()) {
    absl::Status status = kube::ForEach(
        api, collection,
        [&releases](const Json& object) {
          AddRelease(ReleaseOf(object), releases);
          return absl::OkStatus();
        },
        kOfTheChart);
    if (!status.ok() && !absl::IsPermissionDenied(status) && !absl::IsNotFound(status)) {
      return status;
    }
    if (!releases.empty()) break;
  }
  return releases;
}

}  // namespace railhead::cli
