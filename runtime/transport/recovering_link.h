// SPDX-License-Identifier: Apache-2.0
//
// Link over any transport: a sequence of connections (wires).
//
//     +------+  authenticated connection    +-------+   wire is made    +----+
//     | lost | ---------------------------> | begun | ----------------> | up |
//     +------+ <--------------------------- +-------+                   +----+
//        ^          timeout or error                                      |
//        +----------------------------------------------------------------+
//              an error, or the peer reports that it lost the connection
//
// A lost connection loses what was in flight: the rails resend everything that the peer's sink is
// not known to have consumed; arrived frames that were not consumed are dropped, as the peer
// resends them.
//
// The dialing side may not notice the loss before it sends something, so the other side sends it a
// reconnect request. A newer socket replaces the current connection, and one being set up, on both
// sides: a peer that starts one has given up the older.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/link.h"
#include "runtime/transport/wire.h"

namespace railhead::transport {

class RecoveringLink final : public Link {
 public:
  // Returns a link without a connection.
  static absl::StatusOr<std::unique_ptr<Link>> Create(std::unique_ptr<Reconnector> reconnector,
                                                      std::unique_ptr<WireMaker> maker);
  ~RecoveringLink() override;
  RecoveringLink(const RecoveringLink&) = delete;
  RecoveringLink& operator=(const RecoveringLink&) = delete;

  size_t max_payload() const override { return maker_->max_payload(); }
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::Status Push() override;
  Report Poll(FrameSink sink) override;
  void StopPlacing() override {
    if (wire_ != nullptr) wire_->StopPlacing();
  }
  bool polls_in_memory() const override { return maker_->polls_in_memory(); }
  bool connected() const override { return wire_ != nullptr; }
  void Drop(absl::string_view why) override;
  absl::StatusOr<bool> Reconnect(absl::Time now) override;
  bool Flushed() const override { return wire_ == nullptr || wire_->Flushed(); }
  Load load() const override { return wire_ != nullptr ? wire_->load() : Load(); }
  void SetHold(size_t bytes) override {
    if (wire_ != nullptr) wire_->SetHold(bytes);
  }
  absl::StatusOr<bool> WakeBy(int epoll, void* tag) override;
  void Answer(absl::Time now) override;
  absl::Status Acknowledge() override;
  absl::Status Arm(Wake wake) override;
  std::string MovedTo() const override { return reconnector_->acceptor().MovedTo(); }
  void PeerMovedTo(absl::string_view address) override { reconnector_->PeerMovedTo(address); }
  const LinkStats& stats() const override { return stats_; }

 private:
  RecoveringLink(std::unique_ptr<Reconnector> reconnector, std::unique_ptr<WireMaker> maker);

  // Ends the connection; returns its error, which applies from now on.
  absl::Status Lose(const absl::Status& status);
  // Advances the next connection.
  absl::Status Work(absl::Time now);
  void CountStrangers();

  // With all that the link waits for.
  const std::unique_ptr<Reconnector> reconnector_;
  LinkStats stats_;
  uint64_t reconnector_strangers_ = 0;  // already counted
  const std::unique_ptr<WireMaker> maker_;
  std::unique_ptr<Wire> wire_;
  absl::Status error_;                           // why there is no connection
  absl::Time next_look_ = absl::InfinitePast();  // at the connector
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_
