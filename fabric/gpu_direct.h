// SPDX-License-Identifier: Apache-2.0
//
// GPUDirect RDMA: whether HCAs of this node can access the memory of its GPUs, and whether that
// traffic stays below the PCIe switch. Read without privileges. Used by the node agent.
#ifndef RAILHEAD_FABRIC_GPU_DIRECT_H_
#define RAILHEAD_FABRIC_GPU_DIRECT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Mechanism by which an HCA registers GPU memory.
enum class GpuDirectWay {
  kNone,
  kPeermem,  // through nvidia-peermem, a module between both drivers
  kDmabuf,   // through the kernel's dma-buf; preferred
};

enum class Iommu { kUnknown, kOff, kPassthrough, kTranslating };

// Path between a GPU and an HCA below one PCIe switch. With access control services (ACS), traffic
// goes up to the host bridge and back, at a fraction of the bandwidth.
enum class SwitchPath { kUnknown, kDirect, kRedirected };

struct GpuDirect {
  std::string kernel;          // release: "6.1.0-18-amd64"; "" if unknown
  bool peermem = false;        // the module is loaded
  bool dmabuf = false;         // kernel and GPU driver can export GPU memory
  std::string dmabuf_missing;  // why dmabuf is false, and the fix; "" if true
  Iommu iommu = Iommu::kUnknown;
  SwitchPath switch_path = SwitchPath::kUnknown;

  bool operator==(const GpuDirect&) const = default;
};

// Examines the node for `inventory.gpus`, which must not be empty. `host` is the tree with the
// host's /sys; `proc` the one with /proc, which is the container's own.
//
// Sources: in-kernel RDMA registers dma-buf memory since Linux 5.12 (ib_umem_dmabuf). NVIDIA
// exports it in its open kernel modules only; /proc/driver/nvidia/version names the flavour. amdgpu
// exports it. Two functions below one switch share an IOMMU group exactly if access control does
// not separate them; without an IOMMU an unprivileged reader cannot know.
GpuDirect ReadGpuDirect(const RootFiles& host, const RootFiles& proc,
                        const NodeInventory& inventory);

// Returns true if the module that lets HCAs register GPU memory by its address is loaded.
bool HasPeermem(const RootFiles& host);

GpuDirectWay WayOf(const GpuDirect& direct);

// Return "none", "peermem", "dmabuf"; "unknown", "off", "passthrough", "translating"; "unknown",
// "direct", "redirected".
absl::string_view ToString(GpuDirectWay way);
absl::string_view ToString(Iommu iommu);
absl::string_view ToString(SwitchPath path);

// Returns why GPUDirect does not work on this node, or is slow, with the fix; "" if no fault is
// known.
std::string GpuDirectTrouble(const GpuDirect& direct);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GPU_DIRECT_H_
