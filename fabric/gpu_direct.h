// SPDX-License-Identifier: Apache-2.0
//
// Can HCAs of this node read and write the memory of its GPUs (GPUDirect RDMA), and does such
// traffic stay below the PCIe switch? Read from what any process may see, without privileges.
#ifndef RAILHEAD_FABRIC_GPU_DIRECT_H_
#define RAILHEAD_FABRIC_GPU_DIRECT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// How an HCA can register GPU memory.
enum class GpuDirectWay {
  kNone,
  kPeermem,  // by a module between both drivers: nvidia-peermem
  kDmabuf,   // by the kernel's own dma-buf; the better one where both are there
};

enum class Iommu { kUnknown, kOff, kPassthrough, kTranslating };

// Which way traffic between a GPU and an HCA below one PCIe switch takes. With access control (ACS)
// on, the switch sends it up to the host bridge and down again, at a fraction of the bandwidth.
enum class SwitchPath { kUnknown, kDirect, kRedirected };

struct GpuDirect {
  std::string kernel;          // release: "6.1.0-18-amd64"; "" when unknown
  bool peermem = false;        // the module is loaded
  bool dmabuf = false;         // kernel and GPU driver can export GPU memory
  std::string dmabuf_missing;  // why dmabuf is false, and what to do; "" when it is true
  Iommu iommu = Iommu::kUnknown;
  SwitchPath switch_path = SwitchPath::kUnknown;

  bool operator==(const GpuDirect&) const = default;
};

// What the node offers for `inventory.gpus`, of which there must be some. `host` is the host's tree
// with /sys; `proc` the one with /proc, which is the container's own.
//
// Sources: in-kernel RDMA registers dma-buf memory since Linux 5.12 (ib_umem_dmabuf); NVIDIA's
// driver exports it in its open kernel modules, and says which it is in
// /proc/driver/nvidia/version; amdgpu exports it. The kernel puts two functions below one switch
// into one IOMMU group exactly when access control does not part them; without an IOMMU it tells an
// unprivileged reader nothing.
GpuDirect ReadGpuDirect(const RootFiles& host, const RootFiles& proc,
                        const NodeInventory& inventory);

GpuDirectWay WayOf(const GpuDirect& direct);

// "none", "peermem", "dmabuf"; "unknown", "off", "passthrough", "translating"; "unknown", "direct",
// "redirected".
absl::string_view ToString(GpuDirectWay way);
absl::string_view ToString(Iommu iommu);
absl::string_view ToString(SwitchPath path);

// Why GPUDirect does not work on this node, or works at less than full speed, and what to do; "" if
// nothing is known against it.
std::string GpuDirectTrouble(const GpuDirect& direct);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GPU_DIRECT_H_
