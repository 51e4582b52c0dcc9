// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/verbs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs_api.h"

namespace railhead::transport {

VerbsDevice::VerbsDevice(std::shared_ptr<const verbs::DevicePort> port)
    : port_(std::move(port)), memory_(verbs::UserMemory::Of(port_)) {}

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
