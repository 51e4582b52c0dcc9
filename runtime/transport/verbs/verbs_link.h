// SPDX-License-Identifier: Apache-2.0
//
// A link over one rail to one peer, and its connections, one after the other.
//
//     +------+   a socket through the door   +------------+   both offers    +-----------+
//     | lost | ----------------------------> | exchanging | ---------------> | preparing |
//     +------+                               +------------+                  +-----------+
//       ^  ^                                                                       | both are ready
//       |  |   no answer, an error, no port: from everywhere                       v
//       |  +-----------------------------------------------------------------  greeting
//       |                                                                          | greeted
//       |      an error, or the peer says that it has lost it                      v
//       +--------------------------------------------------------------------------up
//
// Each side says over the socket what it has prepared (offer.h), connects its queue pairs to what
// the other has, and says that it is ready; then a greeting crosses the rail itself.
//
// Losing a connection destroys its queue pairs, so from then on nothing arrives, no slot is
// written, and nothing of the user's memory is read. Everything that the peer's sink is not known
// to have taken is then the rails' to repeat; what a slot holds that was not delivered is dropped,
// and the peer repeats it likewise. Each connection begins with new queue pairs on both sides
// (offer.h), with counters at their beginning.
//
// The side that dials (door.h) may not notice that the other has lost the connection: its NIC gets
// no answer only when it sends something. So the other one knocks at its door. A newer exchange
// replaces the connection, the greeting and the exchange before it, on both sides: whoever begins
// one has given up what was.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_LINK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/net/fd.h"
#include "runtime/transport/door/door.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/channel.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/offer.h"
#include "runtime/transport/verbs/user_memory.h"

namespace railhead::transport::verbs {

class VerbsLink final : public Link {
 public:
  // Not connected. `peer` names it in errors.
  static absl::StatusOr<std::unique_ptr<Link>> Create(std::shared_ptr<const DevicePort> port,
                                                      std::shared_ptr<UserMemory> memory,
                                                      std::unique_ptr<Door> door,
                                                      absl::string_view peer);
  ~VerbsLink() override;

  size_t max_payload() const override { return kSlotPayload; }
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::StatusOr<bool> Poll(FrameSink sink) override;
  bool recovers() const override { return true; }
  bool connected() const override { return up_; }
  uint64_t unacknowledged() const override {
    return up_ ? channel_->unacknowledged() : unacknowledged_;
  }
  void Drop(absl::string_view why) override { Lose(At(absl::UnavailableError(why))).IgnoreError(); }
  absl::StatusOr<bool> Reconnect(absl::Time now) override;
  bool Flushed() const override { return !up_ || channel_->Flushed(); }
  Load load() const override { return up_ ? channel_->load() : Load(); }
  void SetHold(size_t bytes) override;
  int event_fd() const override { return epoll_.get(); }
  void Answer(absl::Time now) override;
  bool owes() const override { return up_ && channel_->owes(); }
  absl::Status Acknowledge() override;
  absl::Status Arm(Wake wake) override;
  const LinkStats& stats() const override { return stats_; }

 private:
  VerbsLink(std::shared_ptr<const DevicePort> port, std::shared_ptr<UserMemory> memory,
            std::unique_ptr<Door> door, net::Fd epoll, absl::string_view peer);

  // An error, with where it happened.
  absl::Status At(const absl::Status& status) const;
  // Ends the connection, if it can have another one; its error from now on.
  absl::Status Lose(const absl::Status& status);
  absl::Status Prepare();
  // The same with what memory may be pinned now.
  absl::Status MakeOffer();
  absl::Status LookAtDoor(absl::Time now);
  // Drops the connection, or the attempt at one.
  void Clear();
  void CountStrangers();
  absl::Status Begin(net::Fd socket, absl::Time now);
  absl::Status Exchange(absl::Time now);
  absl::Status Accept(absl::string_view address);
  absl::Status Watch(int fd);

  const std::shared_ptr<const DevicePort> port_;
  const std::shared_ptr<UserMemory> memory_;
  const std::string peer_;
  const std::unique_ptr<Door> door_;
  // Stands in other people's waits for whatever the link waits for now.
  net::Fd epoll_;
  LinkStats stats_;

  std::optional<Rings> rings_;  // from the first offer on
  std::optional<Offer> offer_;  // that the peer has not answered yet
  std::unique_ptr<Channel> channel_;
  bool up_ = false;
  // While it is not up: why, and what was not acknowledged when it was lost.
  absl::Status error_;
  uint64_t unacknowledged_ = 0;

  uint64_t downs_ = 0;                           // of the port, when the connection began
  uint64_t ups_ = 0;                             // those that were answered
  absl::Time next_look_ = absl::InfinitePast();  // at the door
  uint64_t door_strangers_ = 0;                  // that have been counted

  // An exchange of offers.
  net::Fd socket_;
  std::string heard_;
  absl::Time give_up_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_LINK_H_
