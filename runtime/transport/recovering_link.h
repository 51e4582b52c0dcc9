// SPDX-License-Identifier: Apache-2.0
//
// A link over any transport, and its connections, one after the other.
//
//     +------+    a line through the door    +--------+   the wire is made   +----+
//     | lost | ----------------------------> | begun  | -------------------> | up |
//     +------+ <---------------------------- +--------+                      +----+
//        ^         no answer, or an error                                       |
//        +----------------------------------------------------------------------+
//               an error, or the peer says that it has lost the connection
//
// A connection that is lost is gone, with what was under way on it: everything that the peer's sink
// is not known to have taken is the rails' to repeat, and what had come and was not taken is
// dropped, for the peer repeats it likewise.
//
// The side that dials (door.h) may not notice that the other has lost the connection: it may learn
// of it only when it sends something. So the other one knocks at its door. A newer socket replaces
// the connection, and the one that is being made, on both sides: whoever begins one has given up
// what was.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/net/fd.h"
#include "runtime/transport/door/door.h"
#include "runtime/transport/link.h"
#include "runtime/transport/wire.h"

namespace railhead::transport {

class RecoveringLink final : public Link {
 public:
  // Not connected.
  static absl::StatusOr<std::unique_ptr<Link>> Create(std::unique_ptr<Door> door,
                                                      std::unique_ptr<WireMaker> maker);

  size_t max_payload() const override { return maker_->max_payload(); }
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::StatusOr<bool> Poll(FrameSink sink) override;
  void StopPlacing() override {
    if (wire_ != nullptr) wire_->StopPlacing();
  }
  bool polls_in_memory() const override { return maker_->polls_in_memory(); }
  bool connected() const override { return wire_ != nullptr; }
  uint64_t unacknowledged() const override {
    return wire_ != nullptr ? wire_->unacknowledged() : unacknowledged_;
  }
  void Drop(absl::string_view why) override;
  absl::StatusOr<bool> Reconnect(absl::Time now) override;
  bool Flushed() const override { return wire_ == nullptr || wire_->Flushed(); }
  Load load() const override { return wire_ != nullptr ? wire_->load() : Load(); }
  absl::Duration round_trip() const override {
    return wire_ != nullptr ? wire_->round_trip() : absl::ZeroDuration();
  }
  void SetHold(size_t bytes) override {
    if (wire_ != nullptr) wire_->SetHold(bytes);
  }
  int event_fd() const override { return epoll_.get(); }
  void Answer(absl::Time now) override;
  bool owes() const override { return wire_ != nullptr && wire_->owes(); }
  absl::Status Acknowledge() override;
  absl::Status Arm(Wake wake) override;
  const LinkStats& stats() const override { return stats_; }

 private:
  RecoveringLink(std::unique_ptr<Door> door, std::unique_ptr<WireMaker> maker, net::Fd epoll);

  // Ends the connection; its error from now on.
  absl::Status Lose(const absl::Status& status);
  // Works at the next one.
  absl::Status Work(absl::Time now);
  void CountStrangers();

  const std::unique_ptr<Door> door_;
  // Stands in other people's waits for whatever the link waits for now.
  const net::Fd epoll_;
  LinkStats stats_;
  uint64_t door_strangers_ = 0;  // that have been counted
  const std::unique_ptr<WireMaker> maker_;
  std::unique_ptr<Wire> wire_;
  // While there is none: why, and what was not acknowledged when it was lost.
  absl::Status error_;
  uint64_t unacknowledged_ = 0;
  absl::Time next_look_ = absl::InfinitePast();  // at the door
};

// Has `epoll` watch whether `fd` is readable.
absl::Status Watch(int epoll, int fd);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_RECOVERING_LINK_H_
