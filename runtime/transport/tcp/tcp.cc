// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/recovering_link.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace railhead::transport {
namespace {

constexpr size_t kMaxSealedPayload = size_t{256} << 10;

// The socket on which both sides have proven who they are is the connection.
class TcpWireMaker final : public WireMaker {
 public:
  // The reconnector outlives it.
  TcpWireMaker(const Reconnector& reconnector, FrameProtection protection)
      : reconnector_(reconnector), protection_(protection) {}

  size_t max_payload() const override {
    // A frame is sealed before its first byte leaves, and checked after its last one has come.
    return protection_ == FrameProtection::kNone ? TcpWire::kMaxPayload : kMaxSealedPayload;
  }
  bool polls_in_memory() const override { return false; }
  absl::Time Now() const override { return MonotonicNow(); }
  absl::Status At(const absl::Status& status) const override {
    return absl::Status(status.code(),
                        absl::StrCat("TCP ", reconnector_.Name(), ": ", status.message()));
  }
  absl::Status Begin(Line line, const WireOwner& owner, absl::Time /*now*/) override {
    std::optional<FrameSeals> seals;
    if (protection_ != FrameProtection::kNone) seals.emplace(line.keys, protection_);
    wire_ = std::make_unique<TcpWire>(std::move(line.fd), reconnector_.Name(), owner, seals);
    return absl::OkStatus();
  }
  bool begun() const override { return wire_ != nullptr; }
  void GiveUp() override { wire_.reset(); }
  absl::StatusOr<std::unique_ptr<Wire>> Advance(absl::Time /*now*/) override {
    return std::move(wire_);
  }

 private:
  const Reconnector& reconnector_;
  const FrameProtection protection_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> OpenTcpLink(std::shared_ptr<Acceptor> acceptor,
                                                  Locator peer_acceptor, absl::string_view peer,
                                                  FrameProtection protection) {
  absl::StatusOr<std::unique_ptr<Reconnector>> reconnector =
      Reconnector::Open(std::move(acceptor), std::move(peer_acceptor), peer);
  if (!reconnector.ok()) return reconnector.status();
  auto maker = std::make_unique<TcpWireMaker>(**reconnector, protection);
  return RecoveringLink::Create(*std::move(reconnector), std::move(maker));
}

}  // namespace railhead::transport
