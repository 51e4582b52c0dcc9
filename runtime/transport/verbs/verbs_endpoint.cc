// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/verbs.h"
#include "runtime/transport/verbs/verbs_link.h"

namespace railhead::transport {
namespace {

class VerbsEndpoint final : public Endpoint {
 public:
  VerbsEndpoint(std::unique_ptr<verbs::VerbsLink> link, absl::string_view peer)
      : link_(std::move(link)), peer_(peer), address_(link_->Address()) {}

  std::string Address() const override { return address_; }

  absl::StatusOr<std::unique_ptr<Link>> Connect(absl::string_view peer_address,
                                                absl::Time deadline) override {
    if (link_ == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("peer ", peer_, ": Connect was called before on this verbs endpoint"));
    }
    std::unique_ptr<verbs::VerbsLink> link = std::move(link_);
    if (absl::Status connected = link->Connect(peer_address, deadline); !connected.ok()) {
      return connected;
    }
    return link;
  }

 private:
  std::unique_ptr<verbs::VerbsLink> link_;  // until it is connected
  const std::string peer_;
  const std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> OpenVerbsEndpoint(VerbsDevice& device,
                                                            std::shared_ptr<Hall> hall,
                                                            absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<verbs::VerbsLink>> link =
      verbs::VerbsLink::Create(device.port(), device.memory(), std::move(hall), peer);
  if (!link.ok()) return link.status();
  if (absl::Status prepared = (*link)->Prepare(); !prepared.ok()) {
    return absl::Status(prepared.code(), absl::StrCat("peer ", peer, ": ", prepared.message()));
  }
  return std::make_unique<VerbsEndpoint>(*std::move(link), peer);
}

absl::StatusOr<std::unique_ptr<Link>> OpenVerbsLink(VerbsDevice& device, std::shared_ptr<Hall> hall,
                                                    absl::string_view peer_address,
                                                    absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<verbs::VerbsLink>> link =
      verbs::VerbsLink::Create(device.port(), device.memory(), std::move(hall), peer);
  if (!link.ok()) return link.status();
  if (absl::Status set = (*link)->SetPeer(peer_address); !set.ok()) return set;
  return *std::move(link);
}

}  // namespace railhead::transport
