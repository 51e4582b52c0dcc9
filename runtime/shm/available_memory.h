// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_
#define RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace railhead::shm {

// Returns how many bytes this process can still allocate before the kernel ends processes for lack
// of memory: the least of the machine's and of its control group's (version 2 or 1, as a container
// sees its own). Memory that the kernel gives back first (pages of files, reclaimable slabs) counts
// as available. `root` is where /proc and /sys are mounted.
uint64_t AvailableMemory(const std::string& root);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_
