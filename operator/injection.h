// SPDX-License-Identifier: Apache-2.0
//
// Libraries that a pod's own images do not have: an init container copies them out of an image of
// their own into a volume, which the pod's containers see.
#ifndef RAILHEAD_OPERATOR_INJECTION_H_
#define RAILHEAD_OPERATOR_INJECTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/rdma_containers.h"

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

// Where the libraries lie in a container: what goes before all else in LD_LIBRARY_PATH.
std::string LibraryPath(const Injection& injection);

// What NCCL_NET_PLUGIN has to be: "ofi". Empty where NCCL finds the library by itself
// (libnccl-net.so), or there is none.
std::string PluginName(const Injection& injection);

// Appends to the patch of a pod the volume, its mount in these containers, and the init containers,
// which run before all others, as the user that the first of these containers runs as. They come
// last in the patch, as they move the pod's own. Leaves alone what is there already. A pod with a
// volume of that name, or a container with another mount there, keeps it, with a warning.
// InvalidArgument when a list of the pod is none.
absl::Status AddLibraries(const kube::Json& pod_spec, const std::vector<RdmaContainer>& containers,
                          const Injection& injection, kube::Json& patch,
                          std::vector<std::string>& warnings);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_INJECTION_H_
