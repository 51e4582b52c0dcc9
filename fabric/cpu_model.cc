// SPDX-License-Identifier: Apache-2.0
#include "fabric/cpu_model.h"

#include <string>

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstring>
#endif

namespace railhead::fabric {

#if defined(__x86_64__)

CpuModel ThisCpuModel() {
  CpuModel cpu{.arch = "x86_64"};
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return cpu;
  std::array<char, 12> vendor = {};
  std::memcpy(vendor.data(), &b, 4);
  std::memcpy(vendor.data() + 4, &d, 4);
  std::memcpy(vendor.data() + 8, &c, 4);
  cpu.vendor = std::string(vendor.data(), vendor.size());
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return cpu;
  // The two parts of each number, put together as NCCL does it.
  cpu.family = static_cast<int>(((a >> 8U) & 0xfU) + (((a >> 20U) & 0xffU) << 4U));
  cpu.model = static_cast<int>(((a >> 4U) & 0xfU) + (((a >> 16U) & 0xfU) << 4U));
  return cpu;
}

#else

CpuModel ThisCpuModel() { return {.arch = "arm64"}; }

#endif

}  // namespace railhead::fabric
