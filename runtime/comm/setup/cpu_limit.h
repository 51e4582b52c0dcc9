// SPDX-License-Identifier: Apache-2.0
//
// CPU limit of a container.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_

#include <cstdint>
#include <string>

namespace railhead::comm {

// CPU time that a control group grants to all its processes together, independent of the cores that
// they may run on.
struct CpuLimit {
  uint64_t group = 0;       // equal for processes that share it
  uint64_t millicores = 0;  // thousandths of a core; 0: no limit

  bool operator==(const CpuLimit&) const = default;
};

// Returns the limit of this process's control group (version 2 or 1, as seen inside a container),
// read below `root`/sys.
CpuLimit ReadCpuLimit(const std::string& root);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_
