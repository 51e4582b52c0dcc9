// SPDX-License-Identifier: Apache-2.0
//
// A second, tiny device plugin, for tests that need GPUs beside ours. It shares nothing with the
// agent but kubelet's protocol.
#ifndef RAILHEAD_DEVICE_PLUGIN_TESTING_GPU_PLUGIN_H_
#define RAILHEAD_DEVICE_PLUGIN_TESTING_GPU_PLUGIN_H_

#include <string>
#include <vector>

#include "fabric/inventory.h"

namespace railhead::device_plugin::testing {

// Offers the GPUs as example.com/gpu to the kubelet whose device plugin folder it is, with their
// PCI addresses as ids, through all of kubelet's restarts. A container gets EXAMPLE_GPUS, the ids.
// Has no preference, so that kubelet chooses at random. Returns when `stop_fd` is readable.
void OfferGpus(const std::string& folder, const std::vector<fabric::Gpu>& gpus, int stop_fd);

}  // namespace railhead::device_plugin::testing

#endif  // RAILHEAD_DEVICE_PLUGIN_TESTING_GPU_PLUGIN_H_
