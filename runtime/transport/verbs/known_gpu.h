// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_

#include <memory>
#include <string>

#include "fabric/gpu_direct.h"

namespace railhead::transport::verbs {

// What became of memory of a GPU that was made known to a rail (user_memory.h).
struct KnownGpu {
  std::shared_ptr<const void> known;  // it is, until this is gone
  fabric::GpuDirectWay way = fabric::GpuDirectWay::kNone;
  std::string trouble;  // why the NIC does not read it, and what to do; "" if it does
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_
