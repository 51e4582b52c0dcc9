// SPDX-License-Identifier: Apache-2.0
//
// All cluster state that the environment of pods depends on. Built from the caches, or from files
// for the webhook without a cluster.
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
#include "operator/objects/label_selector.h"
#include "operator/profiles/fabric_facts.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

// A value, rebuilt when the cluster changes.
struct ProfileSet {
  std::vector<RailProfile> profiles;
  std::map<std::string, Labels> namespaces;  // by name
  FabricFacts facts;

  // Returns the namespace's labels. If it is unknown: only kubernetes.io/metadata.name.
  Labels NamespaceLabels(const std::string& name) const;

  bool operator==(const ProfileSet&) const = default;
};

// Returns the current profiles; null if not known yet. Called concurrently by admission.
using ProfileSource = std::function<std::shared_ptr<const ProfileSet>()>;

// Adds an API object: a RailProfile, a Namespace, a Node, or a List of these. Returns
// InvalidArgument with kind, object and field; rejects other kinds and duplicate profiles.
absl::Status AddObject(const kube::Json& object, ProfileSet& set);

// Adds the objects of a YAML or JSON text. Errors begin with `source`.
absl::Status AddObjects(absl::string_view text, absl::string_view source, ProfileSet& set);

// Loads a file, or all *.yaml, *.yml and *.json of a directory. They contain profiles and, if their
// labels matter, the output of `kubectl get railprofiles,namespaces,nodes -o json`.
absl::StatusOr<ProfileSet> LoadProfileSet(const std::string& path);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_SET_H_
