// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/injection.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "operator/objects/fields.h"

namespace railhead::op {
namespace {

using kube::Json;

constexpr size_t kLongest = 512;

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

absl::StatusOr<std::string> ReadLibrary(const Json& object, const std::string& path) {
  const std::string field = JoinPath(path, "library");
  const Json* library = Member(object, "library");
  if (library == nullptr) return std::string();
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
  if (text->size() > kLongest || !absl::StartsWith(*text, "/") || text->rfind('/') == 0 || !named ||
      !std::all_of(text->begin(), text->end(), fits)) {
    return FieldError(field,
                      "must be the path of libnccl-net.so or libnccl-net-NAME.so in a directory of "
                      "the image, such as /opt/plugin/lib/libnccl-net-ofi.so");
  }
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadFrameworks(const Json& object,
                                                        const std::string& path) {
  std::vector<std::string> frameworks;
  const std::string field = JoinPath(path, "frameworks");
  const Json* list = Member(object, "frameworks");
  if (list == nullptr) return frameworks;
  if (!list->is_array()) return FieldError(field, "must be a list");
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string at = absl::StrCat(field, "[", i, "]");
    absl::StatusOr<std::string> name = ReadString((*list)[i], at);
    if (!name.ok()) return name.status();
    if (std::find(std::begin(kFrameworks), std::end(kFrameworks), *name) == std::end(kFrameworks)) {
      return FieldError(at, absl::StrCat("must be one of ", absl::StrJoin(kFrameworks, ", ")));
    }
    frameworks.push_back(*std::move(name));
  }
  return frameworks;
}

bool Serves(const Injection& injection, absl::string_view framework) {
  return std::find(injection.frameworks.begin(), injection.frameworks.end(), framework) !=
         injection.frameworks.end();
}

}  // namespace

absl::StatusOr<Injection> ReadInjection(const Json& value, const std::string& path) {
  if (absl::Status known = CheckMembers(value, path, {"runtime", "ncclPlugin"}); !known.ok()) {
    return known;
  }
  Injection injection;
  if (const Json* runtime = Member(value, "runtime"); runtime != nullptr) {
    const std::string at = JoinPath(path, "runtime");
    if (absl::Status known = CheckMembers(*runtime, at, {"image", "frameworks"}); !known.ok()) {
      return known;
    }
    absl::StatusOr<std::string> image = ReadImage(*runtime, at);
    if (!image.ok()) return image.status();
    absl::StatusOr<std::vector<std::string>> frameworks = ReadFrameworks(*runtime, at);
    if (!frameworks.ok()) return frameworks.status();
    injection.frameworks = *std::move(frameworks);
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
  if (injection.empty()) return FieldError(path, "must contain runtime or ncclPlugin");
  return injection;
}

std::map<std::string, std::string> SearchPaths(const Injection& injection) {
  std::vector<std::string> libraries;
  std::map<std::string, std::string> paths;
  const bool mpi = Serves(injection, "mpi");
  if (mpi) libraries.push_back(absl::StrCat(kRuntimeLibraries, "/railhead-mpi"));
  // Frameworks find the runtime in other ways, so that the image's own list stays as it is.
  if (mpi || (!injection.runtime_image.empty() && injection.frameworks.empty())) {
    libraries.emplace_back(kRuntimeLibraries);
  }
  // Railhead's own is named by its path.
  if (!injection.plugin_library.empty()) libraries.emplace_back(kPluginLibraries);
  if (!libraries.empty()) paths["LD_LIBRARY_PATH"] = absl::StrJoin(libraries, ":");
  if (Serves(injection, "torch")) paths["PYTHONPATH"] = absl::StrCat(kRuntimeLibraries, "/python");
  return paths;
}

std::map<std::string, std::string> FrameworkVariables(const Injection& injection) {
  std::map<std::string, std::string> variables;
  const std::string mpi = absl::StrCat(kRuntimeLibraries, "/railhead-mpi/libmpi.so.40");
  if (Serves(injection, "jax")) {
    variables["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "mpi";
    variables["MPITRAMPOLINE_LIB"] = mpi;
  }
  if (Serves(injection, "mlx")) variables["MLX_MPI_LIBNAME"] = mpi;
  return variables;
}

std::string PluginName(const Injection& injection) {
  if (injection.own_plugin()) return absl::StrCat(kPluginLibraries, "/libnccl-net-railhead.so");
  absl::string_view name = injection.plugin_library;
  name.remove_prefix(name.rfind('/') == absl::string_view::npos ? 0 : name.rfind('/') + 1);
  absl::ConsumePrefix(&name, "libnccl-net");
  absl::ConsumePrefix(&name, "-");
  absl::ConsumeSuffix(&name, ".so");
  return std::string(name);
}

}  // namespace railhead::op
