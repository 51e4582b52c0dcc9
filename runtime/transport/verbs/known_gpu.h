// SPDX-License-Identifier: Apache-2.0
//
// Result of registering GPU memory with an RDMA rail. Separate from user_memory.h, so that comm/
// needs no verbs header.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_

#include <memory>
#include <string>

#include "fabric/gpu_direct.h"

namespace railhead::transport::verbs {

// Result of registering GPU memory with a rail (user_memory.h).
struct KnownGpu {
  std::shared_ptr<const void> known;  // keeps it registered
  fabric::GpuDirectWay way = fabric::GpuDirectWay::kNone;
  std::string trouble;  // why the NIC cannot read it, and the fix; "" if it can
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_KNOWN_GPU_H_
