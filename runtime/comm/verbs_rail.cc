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

  absl::StatusOr<std::unique_ptr<transport::Endpoint>> Open(absl::string_view peer) override {
    return transport::OpenVerbsEndpoint(*device_, peer);
  }

 private:
  std::unique_ptr<transport::VerbsDevice> device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RdmaRail>> OpenVerbsRail(const fabric::PodRail& rail) {
  absl::StatusOr<std::unique_ptr<transport::VerbsDevice>> device = transport::OpenVerbsDevice(rail);
  if (!device.ok()) return device.status();
  return std::make_unique<VerbsRail>(*std::move(device));
}

}  // namespace railhead::comm
