// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_SET_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_SET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/label_selector.h"
#include "operator/profiles/fabric_facts.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

// All of a cluster that the environment of a pod depends on: a value, made anew when the cluster
// changes.
struct ProfileSet {
  std::vector<RailProfile> profiles;
  std::map<std::string, Labels> namespaces;  // by name
  FabricFacts facts;

  // The labels of a namespace. Of one that is not known: the one label that it surely has.
  Labels NamespaceLabels(const std::string& name) const;

  bool operator==(const ProfileSet&) const = default;
};

// Where admission finds the set of this moment; null while it is not known. Called by many threads
// at once.
using ProfileSource = std::function<std::shared_ptr<const ProfileSet>()>;

// Takes in an object as the API writes it: a RailProfile, a Namespace, a Node, or a List of them.
// InvalidArgument names kind, object and field; another kind is refused, as is a profile twice.
absl::Status AddObject(const kube::Json& object, ProfileSet& set);

// The objects of a YAML or JSON text. Errors begin with `source`.
absl::Status AddObjects(absl::string_view text, absl::string_view source, ProfileSet& set);

// The objects of a file, or of all *.yaml, *.yml and *.json of a folder: profiles, and, where their
// labels matter, what `kubectl get railprofiles,namespaces,nodes -o json` prints.
absl::StatusOr<ProfileSet> LoadProfileSet(const std::string& path);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_SET_H_
