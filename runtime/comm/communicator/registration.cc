// SPDX-License-Identifier: Apache-2.0
//
// Registration of host and GPU memory, which rails then read without copying.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fabric/gpu_direct.h"
#include "runtime/base/log.h"
#include "runtime/comm/communicator/direct_memory.h"
#include "runtime/comm/communicator/known_gpus.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/device/cuda_api.h"
#include "runtime/device/memory.h"

namespace railhead::comm {

namespace {

// Prefix of the warning if a NIC does not read GPU memory directly.
constexpr absl::string_view kThroughTheHost =
    "data sent from GPU memory is copied through the host: ";

}  // namespace

absl::StatusOr<DirectMemory::Registration> DirectMemory::Register(
    absl::Span<const std::byte> memory, const std::shared_ptr<const void>& owner) const {
  if (const device::CudaApi* const driver = cuda(); driver != nullptr) {
    const absl::StatusOr<std::optional<device::Memory>> gpu =
        device::Memory::Find(*driver, memory.data());
    if (!gpu.ok()) return gpu.status();
    if (gpu->has_value()) return RegisterGpu(memory, **gpu);
    const absl::StatusOr<bool> managed = device::Memory::IsManaged(*driver, memory.data());
    if (!managed.ok()) return managed.status();
    // Once a GPU has used managed memory, its values may not be in the pages that a NIC would read.
    if (*managed) return Registration();
  }
  const Logger log(owner_.setup.settings.log_level, owner_.self);
  Registration registration;
  for (const auto& [rail, device] : owner_.fabric.devices) {
    registration.push_back(device->Know(memory, owner, log));
  }
  return registration;
}

DirectMemory::Registration DirectMemory::RegisterGpu(absl::Span<const std::byte> memory,
                                                     const device::Memory& gpu) const {
  const Logger log(owner_.setup.settings.log_level, owner_.self);
  Registration registration;
  std::vector<KnownGpus::Way> ways;
  for (const rails::RailName& name : owner_.fabric.rails) {
    const auto device = owner_.fabric.devices.find(name.rail);
    if (name.transport != "verbs" || device == owner_.fabric.devices.end()) continue;
    transport::verbs::KnownGpu known = device->second->KnowGpu(memory, gpu, log);
    const KnownGpus::Way& way =
        ways.emplace_back(KnownGpus::Way{{name, known.way}, std::move(known.trouble)});
    registration.push_back(std::move(known.known));
    if (!known_gpus_->IsNews(way.rail)) continue;
    if (known.way != fabric::GpuDirectWay::kNone) {
      log.Info(absl::StrCat(rails::ToString(name), ": its NIC reads memory of ", gpu.Name(), " by ",
                            fabric::ToString(known.way)));
    } else {
      const bool allowed = owner_.fabric.decision.fallback == config::Fallback::kAllow;
      log.Write(allowed ? LogLevel::kInfo : LogLevel::kWarn,
                absl::StrCat("degraded: ", kThroughTheHost, way.trouble));
    }
  }
  registration.push_back(known_gpus_->Add(memory, gpu, std::move(ways)));
  return registration;
}

std::string DirectMemory::Trouble() const {
  const std::string trouble = known_gpus_->Trouble();
  return trouble.empty() ? "" : absl::StrCat(kThroughTheHost, trouble);
}

}  // namespace railhead::comm
