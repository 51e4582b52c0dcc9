// SPDX-License-Identifier: Apache-2.0
//
// Writer of CDI specs (Container Device Interface): what a container runtime adds to one container.
// Pure. Used by AllocationStore.
//
// Kubelet keeps an Allocate response for the life of the pod, even over a reboot. With CDI the
// response is only a name, which the runtime resolves at every start of the container.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_

#include <string>

#include "absl/strings/string_view.h"
#include "device-plugin/grant/allocation.h"

namespace railhead::device_plugin {

inline constexpr char kCdiKind[] = "railhead.io/hca";

// Returns true if every version of CDI accepts the device name: a letter, then letters, digits,
// '_', '-' and '.', ending with a letter or digit; 63 characters at most.
bool IsCdiName(absl::string_view name);

// Returns a spec with one device: the allocation, and the host's `rails_path`.
std::string ToCdiSpec(const std::string& name, const Allocation& allocation,
                      const std::string& rails_path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_
