// SPDX-License-Identifier: Apache-2.0
//
// spec.inject of a RailProfile: libraries that a pod's own images do not have, each out of an image
// of its own. admission/libraries.h brings them into the pod. Pure.
#ifndef RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
#define RAILHEAD_OPERATOR_PROFILES_INJECTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"

namespace railhead::op {

// What a profile says; images that are empty are not asked for.
struct Injection {
  std::string runtime_image;   // with librailhead for any image: images/inject
  std::string plugin_image;    // with a network plugin of NCCL
  std::string plugin_library;  // its path there: "/opt/plugin/lib/libnccl-net-ofi.so"
  // Which of kFrameworks are to use the runtime; none: programs that are linked with librailhead.
  std::vector<std::string> frameworks = {};

  bool empty() const { return runtime_image.empty() && plugin_image.empty(); }
  bool operator==(const Injection&) const = default;
};

// Reads spec.inject, which is at `path`. InvalidArgument begins with the path of the wrong field.
absl::StatusOr<Injection> ReadInjection(const kube::Json& value, const std::string& path);

// What spec.inject.runtime.frameworks may have.
inline constexpr const char* kFrameworks[] = {"torch", "jax", "mlx", "mpi"};

// The folders of a container in which the libraries lie.
inline constexpr char kRuntimeLibraries[] = "/opt/railhead/runtime";
inline constexpr char kPluginLibraries[] = "/opt/railhead/nccl-net";

// Lists of folders by which the libraries are found, by variable (LD_LIBRARY_PATH, PYTHONPATH):
// they go before all that is in that variable otherwise.
std::map<std::string, std::string> SearchPaths(const Injection& injection);

// The other variables by which the frameworks find the runtime.
std::map<std::string, std::string> FrameworkVariables(const Injection& injection);

// What NCCL_NET_PLUGIN has to be: "ofi". Empty where NCCL finds the library by itself
// (libnccl-net.so), or there is none.
std::string PluginName(const Injection& injection);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
