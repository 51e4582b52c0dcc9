// SPDX-License-Identifier: Apache-2.0
//
// CPU of a node, as NCCL's topology file describes it. Used by nccl_topology.h and the agent.
#ifndef RAILHEAD_FABRIC_CPU_MODEL_H_
#define RAILHEAD_FABRIC_CPU_MODEL_H_

#include <string>

namespace railhead::fabric {

struct CpuModel {
  std::string arch;         // "x86_64", "arm64"
  std::string vendor = "";  // "GenuineIntel"; "" on other architectures, as all below
  int family = 0;
  int model = 0;
};

// Returns the model of this machine's CPU.
CpuModel ThisCpuModel();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_CPU_MODEL_H_
