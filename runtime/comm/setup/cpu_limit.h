// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_

#include <cstdint>
#include <string>

namespace railhead::comm {

// What a control group lets its processes use of the CPUs together, however many they may run on.
struct CpuLimit {
  uint64_t group = 0;       // equal for processes that share it
  uint64_t millicores = 0;  // thousandths of a core; 0: no limit

  bool operator==(const CpuLimit&) const = default;
};

// That of this process's (version 2 or 1, as a container sees its own). `root` is where /sys is
// mounted.
CpuLimit ReadCpuLimit(const std::string& root);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CPU_LIMIT_H_
