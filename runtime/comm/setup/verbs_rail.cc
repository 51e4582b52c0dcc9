// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/offer.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::comm {
namespace {

static_assert(RdmaRail::kMaxPayload == transport::verbs::kSlotPayload);

class VerbsRail final : public RdmaRail {
 public:
  explicit VerbsRail(std::unique_ptr<transport::VerbsDevice> device) : device_(std::move(device)) {}

  std::string Describe() const override { return device_->Describe(); }

  preflight::PortFacts Facts() const override {
    using transport::verbs::GidKind;
    const transport::verbs::PortState& state = device_->port()->state();
    preflight::PortFacts facts;
    facts.mtu = transport::verbs::MtuBytes(state.attributes.active_mtu);
    facts.largest_mtu = transport::verbs::MtuBytes(state.attributes.max_mtu);
    facts.registers = transport::verbs::Rings::MostBytes();
    facts.least_bytes = transport::verbs::Rings::LeastBytes();
    if (state.gids.empty()) return facts;
    const transport::verbs::GidChoice& gid = state.gids.front();
    facts.gid_kind = std::string(transport::verbs::GidKindName(gid.kind));
    facts.gid_index = gid.index;
    facts.gid_address = transport::verbs::GidText(gid.gid);
    facts.roce_v1 = gid.kind == GidKind::kRoceV1Ipv4 || gid.kind == GidKind::kRoceV1Ipv6 ||
                    gid.kind == GidKind::kRoceV1LinkLocal;
    return facts;
  }

  absl::Status CanPin(size_t links) const override {
    return transport::verbs::Rings::CanPin(*device_->port(), links);
  }
  absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) override {
    return transport::OpenVerbsLink(*device_, std::move(acceptor), std::move(peer_acceptor), peer);
  }
  std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                   std::shared_ptr<const void> owner, const Logger& log) override {
    return device_->memory()->Know(memory, std::move(owner), log);
  }
  transport::verbs::KnownGpu KnowGpu(absl::Span<const std::byte> memory, const device::Memory& gpu,
                                     const Logger& log) override {
    return device_->memory()->KnowGpu(memory, gpu, log);
  }
  bool AccessesItself() const override { return !device_->port()->iwarp(); }
  bool TakesDmaBufs() const override { return device_->port()->TakesDmaBufs(); }
  absl::StatusOr<std::unique_ptr<transport::SharedMemory>> Share(absl::Span<std::byte> memory,
                                                                 const device::DmaBuf* buffer,
                                                                 bool on_device,
                                                                 const Logger& log) override {
    return device_->Share(memory, buffer, on_device, log);
  }

 private:
  std::unique_ptr<transport::VerbsDevice> device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RdmaRail>> OpenVerbsRail(const fabric::PodRail& rail,
                                                        const transport::VerbsSettings& settings) {
  absl::StatusOr<std::unique_ptr<transport::VerbsDevice>> device =
      transport::OpenVerbsDevice(rail, settings);
  if (!device.ok()) return device.status();
  return MakeVerbsRail(*std::move(device));
}

std::unique_ptr<RdmaRail> MakeVerbsRail(std::unique_ptr<transport::VerbsDevice> device) {
  return std::make_unique<VerbsRail>(std::move(device));
}

}  // namespace railhead::comm
