// SPDX-License-Identifier: Apache-2.0
#include "operator/injection.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "operator/fields.h"
#include "operator/json_patch.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

constexpr char kVolume[] = "railhead-libraries";
constexpr char kFolder[] = "/opt/railhead";
constexpr char kRuntimeFolder[] = "/opt/railhead/runtime";
constexpr char kPluginFolder[] = "/opt/railhead/nccl-net";
constexpr size_t kLongest = 512;

// As little as a copy needs. Limits are the same as requests: a pod that was Guaranteed stays so,
// and keeps its own CPUs.
constexpr char kCpu[] = "100m";
constexpr char kMemory[] = "64Mi";

absl::StatusOr<std::string> ReadImage(const Json& object, const std::string& path) {
  const std::string field = JoinPath(path, "image");
  const Json* image = Member(object, "image");
  if (image == nullptr) return FieldError(field, "is missing");
  absl::StatusOr<std::string> text = ReadString(*image, field);
  if (!text.ok()) return text;
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("._:/@-").find(c) != absl::string_view::npos;
  };
  if (text->empty() || text->size() > kLongest || !std::all_of(text->begin(), text->end(), fits) ||
      !absl::ascii_isalnum(static_cast<unsigned char>(text->front())) ||
      !absl::ascii_isalnum(static_cast<unsigned char>(text->back()))) {
    return FieldError(field, "must be an image, such as registry.example/team/image:tag");
  }
  return text;
}

// The path without its last part.
std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

absl::StatusOr<std::string> ReadLibrary(const Json& object, const std::string& path) {
  const std::string field = JoinPath(path, "library");
  const Json* library = Member(object, "library");
  if (library == nullptr) return FieldError(field, "is missing");
  absl::StatusOr<std::string> text = ReadString(*library, field);
  if (!text.ok()) return text;
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("._+/-").find(c) != absl::string_view::npos;
  };
  const std::string name = text->substr(text->rfind('/') + 1);
  absl::string_view suffix = name;
  const bool named = absl::ConsumePrefix(&suffix, "libnccl-net") &&
                     absl::ConsumeSuffix(&suffix, ".so") &&
                     (suffix.empty() || (absl::ConsumePrefix(&suffix, "-") && !suffix.empty()));
  if (text->size() > kLongest || !absl::StartsWith(*text, "/") || FolderOf(*text).empty() ||
      !named || !std::all_of(text->begin(), text->end(), fits)) {
    return FieldError(
        field,
        "must be the path of libnccl-net.so or libnccl-net-NAME.so in a folder of the "
        "image, such as /opt/plugin/lib/libnccl-net-ofi.so");
  }
  return text;
}

struct Copy {
  const char* name;  // of the init container
  std::string image;
  Json command;
};

// /bin/sh, as the runtime's library lies in a folder that is named after the machine.
std::vector<Copy> CopiesOf(const Injection& injection) {
  std::vector<Copy> copies;
  if (!injection.runtime_image.empty()) {
    copies.push_back({"railhead-copy-runtime",
                      injection.runtime_image,
                      {"/bin/sh", "-ec", "mkdir -p \"$1\"; cp -R /usr/lib/*/librailhead.so* \"$1\"",
                       "copy", kRuntimeFolder}});
  }
  if (!injection.plugin_image.empty()) {
    copies.push_back({"railhead-copy-nccl-net",
                      injection.plugin_image,
                      {"/bin/sh", "-ec", "mkdir -p \"$2\"; cp -R \"$1\"/. \"$2\"", "copy",
                       FolderOf(injection.plugin_library), kPluginFolder}});
  }
  return copies;
}

// What is allowed to the container that the libraries are for is allowed to who copies them, and
// nothing more.
Json SecurityContext(const Json& served) {
  Json context = {{"allowPrivilegeEscalation", false},
                  {"readOnlyRootFilesystem", true},
                  {"capabilities", {{"drop", {"ALL"}}}},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  const Json* own = Find(served, "securityContext");
  if (own == nullptr || !own->is_object()) return context;
  for (const char* field : {"runAsUser", "runAsGroup", "runAsNonRoot"}) {
    const Json* value = Find(*own, field);
    if (value != nullptr && !value->is_null()) context[field] = *value;
  }
  return context;
}

Json InitContainer(const Copy& copy, const Json& served) {
  const Json amounts = {{"cpu", kCpu}, {"memory", kMemory}};
  return {{"name", copy.name},
          {"image", copy.image},
          {"command", copy.command},
          {"resources", {{"limits", amounts}, {"requests", amounts}}},
          {"securityContext", SecurityContext(served)},
          {"volumeMounts", {{{"name", kVolume}, {"mountPath", kFolder}}}}};
}

// The list, or null when there is none yet.
absl::StatusOr<const Json*> ListOf(const Json& object, absl::string_view name,
                                   absl::string_view path) {
  const Json* list = Find(object, name);
  if (list == nullptr || list->is_null()) return nullptr;
  if (!list->is_array()) return absl::InvalidArgumentError(absl::StrCat(path, " is not a list"));
  return list;
}

const Json* Named(const Json* list, absl::string_view name) {
  if (list == nullptr) return nullptr;
  const auto found = std::find_if(list->begin(), list->end(), [name](const Json& item) {
    return StringAt(item, {"name"}) == name;
  });
  return found == list->end() ? nullptr : &*found;
}

void Append(const Json* list, const std::string& path, Json value, Json& patch) {
  if (list == nullptr) {
    patch.push_back(AddOperation(path, Json::array({std::move(value)})));
  } else {
    patch.push_back(AddOperation(path + "/-", std::move(value)));
  }
}

// The mount that a container has at our folder; null for none.
const Json* MountAtOurFolder(const Json* mounts) {
  if (mounts == nullptr) return nullptr;
  const auto found = std::find_if(mounts->begin(), mounts->end(), [](const Json& mount) {
    const std::string path = StringAt(mount, {"mountPath"});
    return absl::StripSuffix(path, "/") == kFolder;
  });
  return found == mounts->end() ? nullptr : &*found;
}

void WarnOfOwnPath(const Json& container, const Injection& injection,
                   std::vector<std::string>& warnings) {
  const Json* env = Find(container, "env");
  const Json* own = env == nullptr || !env->is_array() ? nullptr : Named(env, "LD_LIBRARY_PATH");
  if (own == nullptr || absl::StartsWith(StringAt(*own, {"value"}), LibraryPath(injection))) return;
  warnings.push_back(absl::StrCat("railhead: container ", StringAt(container, {"name"}),
                                  " sets LD_LIBRARY_PATH itself: add ", LibraryPath(injection),
                                  " to it, or the libraries there are not found"));
}

}  // namespace

absl::StatusOr<Injection> ReadInjection(const Json& value, const std::string& path) {
  if (absl::Status known = CheckMembers(value, path, {"runtime", "ncclPlugin"}); !known.ok()) {
    return known;
  }
  Injection injection;
  if (const Json* runtime = Member(value, "runtime"); runtime != nullptr) {
    const std::string at = JoinPath(path, "runtime");
    if (absl::Status known = CheckMembers(*runtime, at, {"image"}); !known.ok()) return known;
    absl::StatusOr<std::string> image = ReadImage(*runtime, at);
    if (!image.ok()) return image.status();
    injection.runtime_image = *std::move(image);
  }
  if (const Json* plugin = Member(value, "ncclPlugin"); plugin != nullptr) {
    const std::string at = JoinPath(path, "ncclPlugin");
    if (absl::Status known = CheckMembers(*plugin, at, {"image", "library"}); !known.ok()) {
      return known;
    }
    absl::StatusOr<std::string> image = ReadImage(*plugin, at);
    if (!image.ok()) return image.status();
    absl::StatusOr<std::string> library = ReadLibrary(*plugin, at);
    if (!library.ok()) return library.status();
    injection.plugin_image = *std::move(image);
    injection.plugin_library = *std::move(library);
  }
  if (injection.empty()) return FieldError(path, "must say runtime or ncclPlugin");
  return injection;
}

std::string LibraryPath(const Injection& injection) {
  std::vector<std::string> folders;
  if (!injection.runtime_image.empty()) folders.emplace_back(kRuntimeFolder);
  if (!injection.plugin_image.empty()) folders.emplace_back(kPluginFolder);
  return absl::StrJoin(folders, ":");
}

std::string PluginName(const Injection& injection) {
  absl::string_view name = injection.plugin_library;
  name.remove_prefix(name.rfind('/') == absl::string_view::npos ? 0 : name.rfind('/') + 1);
  absl::ConsumePrefix(&name, "libnccl-net");
  absl::ConsumePrefix(&name, "-");
  absl::ConsumeSuffix(&name, ".so");
  return std::string(name);
}

absl::Status AddLibraries(const Json& pod_spec, const std::vector<RdmaContainer>& containers,
                          const Injection& injection, Json& patch,
                          std::vector<std::string>& warnings) {
  if (injection.empty() || containers.empty()) return absl::OkStatus();
  const absl::StatusOr<const Json*> volumes = ListOf(pod_spec, "volumes", "/spec/volumes");
  if (!volumes.ok()) return volumes.status();
  const absl::StatusOr<const Json*> inits =
      ListOf(pod_spec, "initContainers", "/spec/initContainers");
  if (!inits.ok()) return inits.status();
  const Json* volume = Named(*volumes, kVolume);
  if (volume != nullptr && Find(*volume, "emptyDir") == nullptr) {
    warnings.push_back(absl::StrCat("railhead: no libraries are added: the pod has a volume ",
                                    kVolume, " of its own: give it another name"));
    return absl::OkStatus();
  }
  Json mounts_patch = Json::array();
  for (const RdmaContainer& target : containers) {
    const std::string path = absl::StrCat("/spec", target.pointer, "/volumeMounts");
    const absl::StatusOr<const Json*> mounts = ListOf(*target.container, "volumeMounts", path);
    if (!mounts.ok()) return mounts.status();
    WarnOfOwnPath(*target.container, injection, warnings);
    if (const Json* own = MountAtOurFolder(*mounts); own != nullptr) {
      if (StringAt(*own, {"name"}) != kVolume) {
        warnings.push_back(
            absl::StrCat("railhead: container ", StringAt(*target.container, {"name"}),
                         " gets no libraries: it has a mount of its own at ", kFolder));
      }
      continue;
    }
    Append(*mounts, path, {{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}},
           mounts_patch);
  }
  if (volume == nullptr) {
    Append(*volumes, "/spec/volumes", {{"name", kVolume}, {"emptyDir", {{"sizeLimit", "1Gi"}}}},
           patch);
  }
  for (Json& operation : mounts_patch) patch.push_back(std::move(operation));
  Json missing = Json::array();
  for (const Copy& copy : CopiesOf(injection)) {
    if (Named(*inits, copy.name) == nullptr) {
      missing.push_back(InitContainer(copy, *containers.front().container));
    }
  }
  if (*inits == nullptr) {
    if (!missing.empty()) patch.push_back(AddOperation("/spec/initContainers", missing));
    return absl::OkStatus();
  }
  for (auto copy = missing.rbegin(); copy != missing.rend(); ++copy) {
    patch.push_back(AddOperation("/spec/initContainers/0", *copy));
  }
  return absl::OkStatus();
}

}  // namespace railhead::op
