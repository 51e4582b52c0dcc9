// SPDX-License-Identifier: Apache-2.0
//
// spec.inject of a RailProfile: libraries that a pod's own images do not have, each out of an image
// of its own. admission/libraries.h brings them into the pod. Pure.
#ifndef RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
#define RAILHEAD_OPERATOR_PROFILES_INJECTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "kube/json.h"

namespace railhead::op {

// What a profile says; images that are empty are not asked for.
struct Injection {
  std::string runtime_image;   // with librailhead
  std::string plugin_image;    // with a network plugin of NCCL
  std::string plugin_library;  // its path there: "/opt/plugin/lib/libnccl-net-ofi.so"

  bool empty() const { return runtime_image.empty() && plugin_image.empty(); }
  bool operator==(const Injection&) const = default;
};

// Reads spec.inject, which is at `path`. InvalidArgument begins with the path of the wrong field.
absl::StatusOr<Injection> ReadInjection(const kube::Json& value, const std::string& path);

// The folders of a container in which the libraries lie.
inline constexpr char kRuntimeLibraries[] = "/opt/railhead/runtime";
inline constexpr char kPluginLibraries[] = "/opt/railhead/nccl-net";

// Where the libraries lie in a container: what goes before all else in LD_LIBRARY_PATH.
std::string LibraryPath(const Injection& injection);

// What NCCL_NET_PLUGIN has to be: "ofi". Empty where NCCL finds the library by itself
// (libnccl-net.so), or there is none.
std::string PluginName(const Injection& injection);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_INJECTION_H_
