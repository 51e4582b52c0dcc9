// SPDX-License-Identifier: Apache-2.0
#include "fabric/gpu_direct.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/affinity.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {
namespace {

constexpr std::pair<int, int> kDmabufKernel = {5, 12};

// Returns major and minor of a kernel's release; (0, 0) if it has another form.
std::pair<int, int> VersionOf(const std::string& release) {
  std::pair<int, int> version = {0, 0};
  if (std::sscanf(release.c_str(), "%d.%d", &version.first, &version.second) != 2) return {0, 0};
  return version;
}

bool HasVendor(const NodeInventory& inventory, absl::string_view vendor) {
  return std::any_of(inventory.gpus.begin(), inventory.gpus.end(),
                     [vendor](const Gpu& gpu) { return gpu.vendor == vendor; });
}

std::string MissingForDmabuf(const RootFiles& host, const RootFiles& proc,
                             const NodeInventory& inventory, const std::string& kernel) {
  if (VersionOf(kernel) < kDmabufKernel) {
    return absl::StrCat("Linux ", kernel.empty() ? "(unknown)" : kernel,
                        " cannot register dma-buf memory for RDMA; 5.12 or newer can");
  }
  if (HasVendor(inventory, "10de")) {
    const std::vector<std::string> version =
        proc.ReadLines("/proc/driver/nvidia/version").value_or(std::vector<std::string>());
    if (version.empty()) return "NVIDIA's kernel driver is not loaded; install the GPU driver";
    if (!absl::StrContains(version.front(), "Open Kernel Module")) {
      return "NVIDIA's proprietary kernel module does not export dma-buf; install the open one";
    }
    return "";
  }
  if (HasVendor(inventory, "1002")) {
    return host.IsDirectory("/sys/module/amdgpu") ? ""
                                                  : "amdgpu is not loaded; install the GPU driver";
  }
  return "the driver of these GPUs is unknown";
}

// Returns the IOMMU group of a PCI function, "" if it has none.
std::string GroupOf(const RootFiles& host, const std::string& address) {
  const std::string link =
      host.ReadLink(absl::StrCat("/sys/bus/pci/devices/", address, "/iommu_group")).value_or("");
  return link.substr(link.rfind('/') + 1);
}

Iommu IommuOf(const RootFiles& host, const std::string& group) {
  // A kernel with IOMMU support has the directory; without an active IOMMU it is empty.
  if (group.empty()) {
    return host.IsDirectory("/sys/kernel/iommu_groups") ? Iommu::kOff : Iommu::kUnknown;
  }
  const std::string type =
      host.ReadAttribute(absl::StrCat("/sys/kernel/iommu_groups/", group, "/type")).value_or("");
  if (type == "identity") return Iommu::kPassthrough;
  return type.empty() ? Iommu::kUnknown : Iommu::kTranslating;
}

SwitchPath SwitchPathOf(const RootFiles& host, const NodeInventory& inventory) {
  SwitchPath found = SwitchPath::kUnknown;
  for (const Gpu& gpu : inventory.gpus) {
    const std::string group = GroupOf(host, gpu.pci_address);
    if (group.empty()) continue;
    for (const Hca& hca : inventory.hcas) {
      if (!hca.offered || LevelBetween(gpu, hca) > Level::kPxb) continue;
      const std::string other = GroupOf(host, hca.pci_address);
      if (other.empty()) continue;
      if (other != group) return SwitchPath::kRedirected;
      found = SwitchPath::kDirect;
    }
  }
  return found;
}

}  // namespace

GpuDirect ReadGpuDirect(const RootFiles& host, const RootFiles& proc,
                        const NodeInventory& inventory) {
  GpuDirect direct;
  direct.kernel = proc.ReadAttribute("/proc/sys/kernel/osrelease").value_or("");
  direct.peermem = HasPeermem(host);
  direct.dmabuf_missing = MissingForDmabuf(host, proc, inventory, direct.kernel);
  direct.dmabuf = direct.dmabuf_missing.empty();
  if (!inventory.gpus.empty()) {
    direct.iommu = IommuOf(host, GroupOf(host, inventory.gpus.front().pci_address));
  }
  direct.switch_path = SwitchPathOf(host, inventory);
  return direct;
}

bool HasPeermem(const RootFiles& host) {
  return host.IsDirectory("/sys/module/nvidia_peermem") ||
         host.IsDirectory("/sys/module/nv_peer_mem");
}

GpuDirectWay WayOf(const GpuDirect& direct) {
  if (direct.dmabuf) return GpuDirectWay::kDmabuf;
  return direct.peermem ? GpuDirectWay::kPeermem : GpuDirectWay::kNone;
}

absl::string_view ToString(GpuDirectWay way) {
  switch (way) {
    case GpuDirectWay::kNone:
      return "none";
    case GpuDirectWay::kPeermem:
      return "peermem";
    case GpuDirectWay::kDmabuf:
      return "dmabuf";
  }
  return "";
}

absl::string_view ToString(Iommu iommu) {
  switch (iommu) {
    case Iommu::kUnknown:
      return "unknown";
    case Iommu::kOff:
      return "off";
    case Iommu::kPassthrough:
      return "passthrough";
    case Iommu::kTranslating:
      return "translating";
  }
  return "";
}

absl::string_view ToString(SwitchPath path) {
  switch (path) {
    case SwitchPath::kUnknown:
      return "unknown";
    case SwitchPath::kDirect:
      return "direct";
    case SwitchPath::kRedirected:
      return "redirected";
  }
  return "";
}

std::string GpuDirectTrouble(const GpuDirect& direct) {
  if (WayOf(direct) == GpuDirectWay::kNone) {
    return absl::StrCat("no HCA can register GPU memory: nvidia-peermem is not loaded, and ",
                        direct.dmabuf_missing);
  }
  if (direct.switch_path == SwitchPath::kRedirected) {
    return "PCIe access control (ACS) sends traffic between GPU and HCA through the host bridge; "
           "disable it for the switches' ports (or in the BIOS), and boot with iommu=pt";
  }
  if (direct.iommu == Iommu::kTranslating) {
    return "the IOMMU translates every access between GPU and HCA; boot with iommu=pt";
  }
  return "";
}

}  // namespace railhead::fabric
