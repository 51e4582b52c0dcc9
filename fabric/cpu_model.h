// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_CPU_MODEL_H_
#define RAILHEAD_FABRIC_CPU_MODEL_H_

#include <string>

namespace railhead::fabric {

struct CpuModel {
  std::string arch;         // "x86_64", "arm64"
  std::string vendor = "";  // "GenuineIntel"; "" where there is no such thing, as is the rest
  int family = 0;
  int model = 0;
};

// Of the machine that this runs on.
CpuModel ThisCpuModel();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_CPU_MODEL_H_
