// SPDX-License-Identifier: Apache-2.0
//
// Memory that is left for a process. Segment checks it before it creates shared memory, so that the
// user gets an error instead of a process that the OOM killer ends.
#ifndef RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_
#define RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace railhead::shm {

// Returns the bytes that this process can still allocate before the kernel's OOM killer acts: the
// minimum over the machine and the process's control group (version 2 or 1, as seen in a
// container). Memory that the kernel can reclaim (pages of files, slabs) counts as available.
// `root` is where /proc and /sys are mounted.
uint64_t AvailableMemory(const std::string& root);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_AVAILABLE_MEMORY_H_
