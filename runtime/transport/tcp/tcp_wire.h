// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/slot_queue.h"
#include "runtime/net/fd.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/frame_seal.h"
#include "runtime/transport/tcp/pulse.h"
#include "runtime/transport/wire.h"

namespace railhead::transport {

// Frames on a connected socket. Each is a header (tcp_wire.cc) and the payload. Every header also
// says how many frames its sender has taken, and one without a frame says nothing else: such a one
// goes out when the peer waits for it, after many frames, and before this side sleeps. With seals
// (frame_seal.h) those of the payload and of the header follow the header.
//
// A connection is lost when the peer or the network ends it, or when nothing that was sent is
// acknowledged by the peer's kernel (pulse.h).
class TcpWire final : public Wire {
 public:
  static constexpr size_t kMaxPayload = size_t{256} << 10;

  // `socket` is connected and non-blocking. `name` says in errors which connection this is.
  TcpWire(net::Fd socket, std::string name, const WireOwner& owner,
          std::optional<FrameSeals> seals);
  ~TcpWire() override;

  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::StatusOr<bool> Poll(FrameSink sink) override;
  void StopPlacing() override { placed_.dropped = placed_.size > 0; }
  uint64_t unacknowledged() const override { return sent_ - acknowledged_; }
  bool Flushed() const override { return Drained() && !awaited_; }
  Link::Load load() const override;
  absl::Duration round_trip() const override { return round_trip_; }
  void SetHold(size_t bytes) override;
  bool owes() const override { return taken_ != told_; }
  absl::Status Acknowledge() override;
  absl::Status Arm(Wake wake) override;
  void Abort() override;

 private:
  // An error, with which connection it is of.
  absl::Status Error(absl::string_view why,
                     absl::StatusCode code = absl::StatusCode::kUnavailable) const;
  // The same for what a system call has said.
  absl::Status ErrorOf(absl::string_view what, int error_number) const;
  absl::Status LookRound(absl::Time now);
  absl::StatusOr<bool> Advance(FrameSink sink);

  // A header, and its seals if there are any.
  struct Head;
  static constexpr size_t kHeaderSize = 56;

  bool Drained() const { return out_begin_ == out_.size(); }
  // Whether the kernel takes anything now.
  bool Writable() const;
  void Sign(Head& head, absl::Span<const std::byte> payload) const;
  bool IsSigned(const std::byte* head) const;
  bool IsPayloadSigned(absl::Span<const std::byte> payload, const Seal& seal);
  absl::Status WronglySigned() const;
  // The peer's next frame begins.
  void NextFrame();
  absl::Status Flush();
  absl::Status SendAcknowledgement();
  absl::StatusOr<size_t> Receive();
  absl::StatusOr<bool> Offer(FrameSink sink);
  // Counts a frame that was taken, or dropped.
  void OnTaken(const FrameHeader& header, size_t size);
  absl::Status TakeCount(uint32_t taken);
  void MakeRoom();

  net::Fd socket_;
  const std::string name_;
  const WireOwner owner_;
  uint32_t watched_ = 0;      // with exactly the events that matter now
  int hold_;                  // what the kernel may hold unsent
  uint32_t retransmits_ = 0;  // that have been counted
  std::optional<FrameSeals> seals_;
  const size_t head_size_;
  bool payload_checked_ = false;     // that of the peer's current frame
  std::vector<std::byte> repeated_;  // a payload that may change where it lies, while it is sent
  Pulse pulse_;
  absl::Time next_look_ = absl::InfinitePast();

  // Arrived bytes [in_begin_, in_end_) of in_.
  const std::unique_ptr<std::byte[]> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  bool end_of_stream_ = false;
  bool drained_ = false;  // the kernel had less than was asked for
  bool gathers_ = true;   // the last long frame had no place of its own
  // A frame whose payload goes straight to its place. Then in_ holds only what comes behind it.
  struct Placed {
    FrameHeader header;
    std::byte* place = nullptr;
    size_t size = 0;  // 0: there is none
    size_t arrived = 0;
    bool dropped = false;
    Seal seal{};
  };
  Placed placed_;

  // The rest of a frame of which the kernel took only the beginning, and acknowledgements behind
  // it: [out_begin_, out_.size()).
  std::vector<std::byte> out_;
  size_t out_begin_ = 0;
  bool refused_ = false;  // a TrySend found no room since the last Poll
  uint64_t put_ = 0;      // bytes that went through out_ or past it
  // put_ at the end of each frame that the peer is not known to have taken, and of the last one
  // that it has.
  SlotQueue<uint64_t> ends_;
  uint64_t taken_end_ = 0;
  mutable uint64_t delivered_ = 0;  // what load() has said last: it never says less
  absl::Duration round_trip_;

  // Frames: sent by this side, those of them that the peer has taken, taken by
  // this side, and those of them that the peer has been told of.
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t taken_ = 0;
  uint64_t told_ = 0;
  size_t bytes_not_told_ = 0;
  bool awaited_ = false;  // the peer waits to be told
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_
