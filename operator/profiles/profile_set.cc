// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_set.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "kube/yaml.h"
#include "operator/objects/fields.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxProfileBytes = size_t{1} << 20;

using kube::Json;

absl::Status AddProfile(const Json& object, ProfileSet& set) {
  absl::StatusOr<RailProfile> profile = ParseRailProfile(object);
  if (!profile.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("RailProfile ",
                                                   kube::StringAt(object, {"metadata", "name"}),
                                                   ": ", profile.status().message()));
  }
  for (const RailProfile& other : set.profiles) {
    if (other.name == profile->name) {
      return absl::InvalidArgumentError(
          absl::StrCat("RailProfile ", profile->name, ": metadata.name: appears twice"));
    }
  }
  set.profiles.push_back(*std::move(profile));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::filesystem::path>> FilesAt(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return std::vector<std::filesystem::path>{path};
  }
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::directory_iterator(path, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string kind = entry->path().extension();
    if (kind == ".yaml" || kind == ".yml" || kind == ".json") files.push_back(entry->path());
  }
  if (error) return absl::NotFoundError(absl::StrCat("cannot list ", path, ": ", error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Labels ProfileSet::NamespaceLabels(const std::string& name) const {
  const auto found = namespaces.find(name);
  Labels labels = found == namespaces.end() ? Labels() : found->second;
  labels["kubernetes.io/metadata.name"] = name;
  return labels;
}

absl::Status AddObject(const Json& object, ProfileSet& set) {
  const std::string version = kube::StringAt(object, {"apiVersion"});
  const std::string kind = kube::StringAt(object, {"kind"});
  const std::string name = kube::StringAt(object, {"metadata", "name"});
  if (kind == kProfileKind) return AddProfile(object, set);
  if (version == "v1" && kind == "Namespace") {
    set.namespaces[name] = LabelsOf(object);
    return absl::OkStatus();
  }
  if (version == "v1" && kind == "Node") {
    set.facts.AddNode(name, LabelsOf(object));
    return absl::OkStatus();
  }
  if (version == "v1" && kind == "List") {
    const Json* items = Member(object, "items");
    if (items == nullptr || !items->is_array()) return FieldError("items", "must be a list");
    for (const Json& item : *items) {
      if (absl::Status added = AddObject(item, set); !added.ok()) return added;
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "kind: '", kind, "' is not supported here; use RailProfile, Namespace, Node or List"));
}

absl::Status AddObjects(absl::string_view text, absl::string_view source, ProfileSet& set) {
  const absl::StatusOr<std::vector<Json>> objects = kube::ParseYaml(text, source);
  if (!objects.ok()) return objects.status();
  absl::Status added;
  for (size_t i = 0; added.ok() && i < objects->size(); ++i) added = AddObject((*objects)[i], set);
  if (added.ok()) return added;
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", added.message()));
}

absl::StatusOr<ProfileSet> LoadProfileSet(const std::string& path) {
  const absl::StatusOr<std::vector<std::filesystem::path>> files = FilesAt(path);
  if (!files.ok()) return files.status();
  ProfileSet set;
  for (const std::filesystem::path& file : *files) {
    const absl::StatusOr<std::string> text = ReadInput(file, kMaxProfileBytes);
    if (!text.ok()) return text.status();
    if (absl::Status added = AddObjects(*text, file.string(), set); !added.ok()) return added;
  }
  return set;
}

}  // namespace railhead::op
