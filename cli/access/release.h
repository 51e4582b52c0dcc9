// SPDX-License-Identifier: Apache-2.0
//
// Releases of the chart in a cluster. Any user may create a Deployment or a ConfigMap with the
// chart's labels in their own namespace. So releases are found by objects of the whole cluster,
// which only administrators create, and everything else of a release is read in its namespace only.
#ifndef RAILHEAD_CLI_ACCESS_RELEASE_H_
#define RAILHEAD_CLI_ACCESS_RELEASE_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::cli {

struct Release {
  std::string space;  // namespace
  std::string name;   // of Helm

  bool operator==(const Release&) const = default;
};

// Selector of the chart's objects, in the format of kube::ForEach.
inline constexpr absl::string_view kOfTheChart =
    "labelSelector=app.kubernetes.io%2Fpart-of%3Drailhead";

// Returns the collections with such objects, in the order in which they are read: the next one only
// if there is no release in the earlier. The chart's MutatingWebhookConfiguration names the Service
// in the release's namespace. Its ClusterRoleBindings, for an installation that lost the former,
// name the service accounts.
std::array<kube::ObjectRef, 2> ReleaseCollections();

// Returns the release of an object in one of these collections; nullopt for one of another origin.
std::optional<Release> ReleaseOf(const kube::Json& object);

// Adds the release unless it is there.
void AddRelease(std::optional<Release> release, std::vector<Release>& releases);

// Returns the releases, none without the right to list these collections.
absl::StatusOr<std::vector<Release>> FindReleases(kube::Api& api);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_ACCESS_RELEASE_H_
