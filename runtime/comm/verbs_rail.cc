// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "runtime/comm/rdma_rail.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::comm {
namespace {

class VerbsRail final : public RdmaRail {
 public:
  explicit VerbsRail(std::unique_ptr<transport::VerbsDevice> device) : device_(std::move(device)) {}

  absl::StatusOr<std::unique_ptr<transport::Endpoint>> Open(std::shared_ptr<transport::Hall> hall,
                                                            absl::string_view peer) override {
    return transport::OpenVerbsEndpoint(*device_, std::move(hall), peer);
  }
  absl::StatusOr<std::unique_ptr<transport::Link>> OpenLink(std::shared_ptr<transport::Hall> hall,
                                                            absl::string_view peer_hall,
                                                            absl::string_view peer) override {
    return transport::OpenVerbsLink(*device_, std::move(hall), peer_hall, peer);
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
