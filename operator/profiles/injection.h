// SPDX-License-Identifier: Apache-2.0
//
// spec.inject of a RailProfile: libraries that a pod's own images lack, each from a separate image.
// Brought into the pod by admission/libraries.h. Pure.
#ifndef RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
#define RAILHEAD_OPERATOR_PROFILES_INJECTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"

namespace railhead::op {

// Content of spec.inject; an empty image is not injected.
struct Injection {
  std::string runtime_image;  // with librailhead for any image: images/inject
  std::string plugin_image;   // with a network plugin of NCCL
  // Path in the image: "/opt/plugin/lib/libnccl-net-ofi.so". Empty: the image is images/inject,
  // with Railhead's own plugin.
  std::string plugin_library;
  // Frameworks (kFrameworks) that use the runtime. Empty: only programs linked with librailhead.
  std::vector<std::string> frameworks = {};

  bool empty() const { return runtime_image.empty() && plugin_image.empty(); }
  // Whether NCCL's messages use Railhead's rails.
  bool own_plugin() const { return !plugin_image.empty() && plugin_library.empty(); }
  bool operator==(const Injection&) const = default;
};

// Parses spec.inject at `path`. Returns InvalidArgument, beginning with the path of the invalid
// field.
absl::StatusOr<Injection> ReadInjection(const kube::Json& value, const std::string& path);

// Allowed values of spec.inject.runtime.frameworks.
inline constexpr const char* kFrameworks[] = {"torch", "jax", "mlx", "mpi"};

// Directories of the libraries in a container.
inline constexpr char kRuntimeLibraries[] = "/opt/railhead/runtime";
inline constexpr char kPluginLibraries[] = "/opt/railhead/nccl-net";

// Returns the search paths of the libraries by variable (LD_LIBRARY_PATH, PYTHONPATH). Prepend them
// to the variable's other value.
std::map<std::string, std::string> SearchPaths(const Injection& injection);

// Returns the other variables by which the frameworks find the runtime.
std::map<std::string, std::string> FrameworkVariables(const Injection& injection);

// The name of Railhead's network in NCCL: the value of NCCL_NET that excludes others.
inline constexpr char kOwnNetwork[] = "Railhead";

// Returns the value of NCCL_NET_PLUGIN: "ofi", or the path of Railhead's own plugin. Empty if NCCL
// finds the library by default (libnccl-net.so), or if there is no plugin.
std::string PluginName(const Injection& injection);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
