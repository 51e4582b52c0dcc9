// SPDX-License-Identifier: Apache-2.0
//
// The text of a CDI spec (Container Device Interface): what a container runtime puts into one
// container. Pure.
//
// Kubelet remembers an Allocate answer for the life of the pod, also over a reboot. With CDI that
// answer is a name alone, and the runtime looks up what it means whenever the container starts.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_

#include <string>

#include "absl/strings/string_view.h"
#include "device-plugin/grant/allocation.h"

namespace railhead::device_plugin {

inline constexpr char kCdiKind[] = "railhead.io/hca";

// The name of a CDI device that every version of CDI takes: a letter, then letters, digits, '_',
// '-' and '.', at last a letter or digit; 63 characters at most.
bool IsCdiName(absl::string_view name);

// A spec of one device: the allocation, and `rails_path` of the host.
std::string ToCdiSpec(const std::string& name, const Allocation& allocation,
                      const std::string& rails_path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_CDI_SPEC_H_
