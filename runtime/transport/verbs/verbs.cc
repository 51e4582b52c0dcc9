// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/verbs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/self_pair.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs_api.h"

namespace railhead::transport {
namespace {

class SharedRegion final : public SharedMemory {
 public:
  SharedRegion(verbs::UserMemory::Shared shared, std::shared_ptr<verbs::SelfPair> self)
      : shared_(std::move(shared)), self_(std::move(self)) {}

  uint32_t remote_key() const override { return shared_.remote_key; }
  absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const override {
    if (self_ == nullptr) return NotOfDevice();
    return self_->Write(reinterpret_cast<uintptr_t>(to), remote_key(), from);
  }
  absl::Status Flush(const std::byte* address) const override {
    if (self_ == nullptr) return NotOfDevice();
    return self_->Flush(reinterpret_cast<uintptr_t>(address), remote_key());
  }

 private:
  static absl::Status NotOfDevice() {
    return absl::FailedPreconditionError("the memory is not that of a device");
  }

  const verbs::UserMemory::Shared shared_;
  const std::shared_ptr<verbs::SelfPair> self_;  // null: memory of the host
};

}  // namespace

VerbsDevice::VerbsDevice(std::shared_ptr<const verbs::DevicePort> port)
    : port_(std::move(port)), memory_(verbs::UserMemory::Of(port_)) {}

absl::StatusOr<std::shared_ptr<verbs::SelfPair>> VerbsDevice::Self() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (self_ != nullptr) return self_;
  absl::StatusOr<std::unique_ptr<verbs::SelfPair>> made = verbs::SelfPair::Create(port_);
  if (!made.ok()) return made.status();
  return self_ = *std::move(made);
}

absl::StatusOr<std::unique_ptr<SharedMemory>> VerbsDevice::Share(absl::Span<std::byte> memory,
                                                                 const device::DmaBuf* buffer,
                                                                 bool on_device,
                                                                 const Logger& log) {
  std::shared_ptr<verbs::SelfPair> self;
  if (on_device) {
    absl::StatusOr<std::shared_ptr<verbs::SelfPair>> made = Self();
    if (!made.ok()) return made.status();
    self = *std::move(made);
  }
  absl::StatusOr<verbs::UserMemory::Shared> shared = memory_->Share(memory, buffer, on_device, log);
  if (!shared.ok()) return shared.status();
  if (on_device) {
    absl::Status verified =
        self->Verify(reinterpret_cast<uintptr_t>(memory.data()), shared->remote_key, memory.size());
    // While the port is down, nothing can be tried, nor written.
    if (!verified.ok() && !absl::IsUnavailable(verified)) return verified;
  }
  return std::make_unique<SharedRegion>(*std::move(shared), std::move(self));
}

std::string VerbsDevice::Describe() const {
  const std::string gid =
      port_->state().gids.empty()
          ? ""
          : absl::StrCat(", ", verbs::GidKindName(port_->state().gids.front().kind), " ",
                         verbs::GidText(port_->state().gids.front().gid), " (GID index ",
                         port_->state().gids.front().index, ")");
  if (port_->iwarp()) {
    return absl::StrCat(port_->name(), ": iWARP, ", port_->state().addresses.front().ToString());
  }
  return absl::StrCat(port_->name(), ": ", port_->state().infiniband() ? "InfiniBand" : "Ethernet",
                      ", MTU ", verbs::MtuBytes(port_->state().attributes.active_mtu), gid);
}

absl::Status VerbsLibraryStatus() { return verbs::LoadVerbsApi().status(); }

absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(
    const fabric::PodRail& rail, const VerbsSettings& settings,
    std::shared_ptr<const verbs::VerbsApi> api, std::function<absl::Time()> clock) {
  absl::StatusOr<std::shared_ptr<const verbs::DevicePort>> port =
      verbs::DevicePort::Open(rail, settings, std::move(api), std::move(clock));
  if (!port.ok()) return port.status();
  return std::make_unique<VerbsDevice>(*std::move(port));
}

absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(const fabric::PodRail& rail,
                                                             const VerbsSettings& settings) {
  absl::StatusOr<std::shared_ptr<const verbs::VerbsApi>> api = verbs::LoadVerbsApi();
  if (!api.ok()) {
    return absl::Status(
        api.status().code(),
        absl::StrCat("rail ", rail.rail, ", device ", rail.device, ": ", api.status().message()));
  }
  return OpenVerbsDevice(rail, settings, *std::move(api), [] { return MonotonicNow(); });
}

}  // namespace railhead::transport
