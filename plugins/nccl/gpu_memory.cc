// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/gpu_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "fabric/gpu_direct.h"
#include "fabric/root_files.h"

namespace railhead::nccl {
namespace {

constexpr size_t kLongestSetting = 64;

bool HasPeermem(const std::string& root) {
  const absl::StatusOr<fabric::RootFiles> host = fabric::RootFiles::Open(root);
  return host.ok() && fabric::HasPeermem(*host);
}

}  // namespace

absl::StatusOr<GpuMemory> GpuMemoryOf(absl::string_view setting, const std::string& root,
                                      const std::vector<RailForGpus>& rails) {
  GpuMemory memory;
  const bool automatic = setting.empty() || setting == "auto";
  if (setting == "off") {
    memory.why_not = absl::StrCat(kGpuMemoryVariable, "=off");
    return memory;
  }
  if (!automatic && setting != "peermem" && setting != "dmabuf") {
    return absl::InvalidArgumentError(
        absl::StrCat(kGpuMemoryVariable, "='", PrintableText(setting, kLongestSetting),
                     "' is not allowed; it is auto, off, peermem or dmabuf"));
  }
  if (rails.empty()) memory.why_not = "the rails are TCP";
  for (const RailForGpus& rail : rails) {
    if (!memory.why_not.empty()) break;
    if (!rail.trouble.empty()) {
      memory.why_not = absl::StrCat(rail.name, " is not open: ", rail.trouble);
    } else if (!rail.of_self) {
      memory.why_not = absl::StrCat(rail.name, " is iWARP");
    }
  }
  if (!memory.why_not.empty()) return memory;
  memory.peermem = setting == "peermem" || (automatic && HasPeermem(root));
  memory.dma_buf =
      setting != "peermem" && std::all_of(rails.begin(), rails.end(),
                                          [](const RailForGpus& rail) { return rail.dma_bufs; });
  if (!memory.peermem && !memory.dma_buf) {
    memory.why_not =
        "a NIC's driver takes no dma-bufs, and nvidia-peermem is not loaded: load it on the node";
  }
  return memory;
}

}  // namespace railhead::nccl
