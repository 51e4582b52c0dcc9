// SPDX-License-Identifier: Apache-2.0
//
// Limit of open files, including sockets, of this process (RLIMIT_NOFILE).
#ifndef RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_
#define RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_

#include <cstdint>
#include <optional>

namespace railhead {

// Raises the soft limit to the hard limit. Shells set 1024, too few for several rails to dozens of
// ranks.
void RaiseDescriptorLimit();

// Returns the soft limit.
uint64_t DescriptorLimit();

// Returns how many more descriptors this process may open; nullopt if /proc is not readable. Opens
// at most one itself, to leave the others to other threads.
std::optional<uint64_t> FreeDescriptors();

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_
