// SPDX-License-Identifier: Apache-2.0
//
// Whether NCCL may give GPU memory to the plugin: RAILHEAD_NCCL_GPU_MEMORY, the kernel and the
// rails decide. Pure, but for reading files below `root`.
#ifndef RAILHEAD_PLUGINS_NCCL_GPU_MEMORY_H_
#define RAILHEAD_PLUGINS_NCCL_GPU_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::nccl {

inline constexpr char kGpuMemoryVariable[] = "RAILHEAD_NCCL_GPU_MEMORY";

// Properties of a rail that matter for GPU memory.
struct RailForGpus {
  std::string name;
  std::string trouble;    // why it is not open; "" if it is
  bool of_self = false;   // its NIC can access memory of its own node (transport/verbs/self_pair.h)
  bool dma_bufs = false;  // its driver takes dma-bufs
};

struct GpuMemory {
  bool peermem = false;  // by address
  bool dma_buf = false;
  std::string why_not;  // "" if either is possible
};

// `setting`: "" or "auto", "off", "peermem" (as if a module for it was loaded) or "dmabuf".
// InvalidArgument for another.
absl::StatusOr<GpuMemory> GpuMemoryOf(absl::string_view setting, const std::string& root,
                                      const std::vector<RailForGpus>& rails);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_GPU_MEMORY_H_
