// SPDX-License-Identifier: Apache-2.0
//
// Checks whether ranks that share memory have a core each. If they do, a waiting rank spins;
// otherwise it yields to the others.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CORES_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CORES_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace railhead::comm {

// Bit mask of the cores that a rank may run on: core i is bit i % 8 of byte i / 8.
using Cores = std::string;

inline bool Has(const Cores& cores, size_t core) {
  return core / 8 < cores.size() &&
         ((static_cast<unsigned char>(cores[core / 8]) >> core % 8) & 1U) != 0;
}

// Returns true if each rank can have its own core, among those that it may run on.
bool OneForEach(absl::Span<const Cores> ranks);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CORES_H_
