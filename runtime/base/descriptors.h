// SPDX-License-Identifier: Apache-2.0
//
// How many files, sockets among them, this process may have open (RLIMIT_NOFILE).
#ifndef RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_
#define RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_

#include <cstdint>

namespace railhead {

// Raises the limit that is in force to the highest that this process may have. Shells set it to
// 1024, which is too few for several rails to dozens of ranks.
void RaiseDescriptorLimit();

// Returns the limit that is in force.
uint64_t DescriptorLimit();

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_DESCRIPTORS_H_
