// SPDX-License-Identifier: Apache-2.0
//
// Frames on a connected socket, acknowledged, and optionally signed or encrypted. One connection of
// a TCP link (recovering_link.h): after a loss the link gets another.
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
#include "runtime/transport/tcp/ack_timeout.h"
#include "runtime/transport/tcp/frame_seal.h"
#include "runtime/transport/wire.h"

namespace railhead::transport {

// A frame is a header (tcp_wire.cc) and the payload. Every header has the number of frames that its
// sender has consumed. A header without a frame is an acknowledgement: sent if the peer waits for
// it, after many frames, and before this side sleeps. With seals (frame_seal.h), those of payload
// and header follow the header.
//
// A connection is lost when the peer or the network ends it, or when the peer's kernel acknowledges
// nothing (ack_timeout.h).
class TcpWire final : public Wire {
 public:
  static constexpr size_t kMaxPayload = size_t{1} << 20;

  // `socket` is connected and non-blocking. `name` identifies the connection in errors.
  TcpWire(net::Fd socket, std::string name, const WireOwner& owner,
          std::optional<FrameSeals> seals);
  ~TcpWire() override;

  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::Status Push() override { return waits_ ? Flush() : absl::OkStatus(); }
  Link::Report Poll(FrameSink sink) override {
    return {Work(sink), sent_ - acknowledged_, taken_ != told_};
  }
  void StopPlacing() override { placed_.dropped = placed_.size > 0; }
  bool Flushed() const override { return Drained() && !awaited_; }
  Link::Load load() const override;
  void SetHold(size_t bytes) override;
  absl::Status Acknowledge() override;
  absl::Status Arm(Wake wake) override;
  void Abort() override;

 private:
  // Returns an error with the connection's name.
  absl::Status Error(absl::string_view why,
                     absl::StatusCode code = absl::StatusCode::kUnavailable) const;
  // Returns the error of a failed system call.
  absl::Status ErrorOf(absl::string_view what, int error_number) const;
  absl::Status LookRound(absl::Time now);
  absl::StatusOr<bool> Work(FrameSink sink);
  absl::StatusOr<bool> Advance(FrameSink sink);

  // A header, with seals if used.
  struct Head;
  static constexpr size_t kHeaderSize = 56;

  size_t Unsent() const { return out_.size() - out_begin_ + rest_.size(); }
  bool Drained() const { return Unsent() == 0; }
  // Returns true if the kernel accepts data now.
  bool Writable() const;
  // Completes the head with the seals, if used. Returns the payload as it is sent.
  absl::Span<const std::byte> Protect(Head& head, absl::Span<const std::byte> payload,
                                      bool repeated);
  bool IsSigned(const std::byte* head) const;
  // Decrypts the payload, too.
  bool IsPayloadSigned(absl::Span<std::byte> payload, const Seal& seal);
  absl::Status WronglySigned() const;
  // Advances to the peer's next frame.
  void NextFrame();
  absl::Status Flush();
  absl::Status SendAcknowledgement();
  absl::StatusOr<size_t> Receive();
  absl::StatusOr<bool> Offer(FrameSink sink);
  // Counts a frame that was consumed or dropped.
  void OnTaken(const FrameHeader& header, size_t size);
  absl::Status TakeCount(uint32_t taken);
  void MakeRoom();

  net::Fd socket_;
  const std::string name_;
  const WireOwner owner_;
  uint32_t watched_ = 0;      // events that it waits for now
  int hold_;                  // maximum unsent bytes in the kernel
  uint32_t retransmits_ = 0;  // already counted
  std::optional<FrameSeals> seals_;
  const size_t head_size_;
  bool payload_checked_ = false;  // of the peer's current frame
  // copy of a payload that is sent encrypted, or that may change while it is sent
  std::vector<std::byte> protected_;
  AckTimeout ack_timeout_;
  absl::Time next_look_ = absl::InfinitePast();

  // Arrived bytes [in_begin_, in_end_) of in_.
  const std::unique_ptr<std::byte[]> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  bool end_of_stream_ = false;
  bool drained_ = false;  // the kernel had less than requested
  bool gathers_ = true;   // the last long frame had no place
  // A long frame is in in_ in part, whose place may be posted before the next Poll.
  bool awaits_place_ = false;
  // A frame whose payload is written directly to its place. in_ then holds only later bytes.
  struct Placed {
    FrameHeader header;
    std::byte* place = nullptr;
    size_t size = 0;  // 0: none
    size_t arrived = 0;
    bool dropped = false;
    Seal seal{};
  };
  Placed placed_;

  // Rest of a frame that the kernel took in part, and acknowledgements after it; or, if waits_,
  // small frames that wait for the next one: [out_begin_, out_.size()).
  std::vector<std::byte> out_;
  size_t out_begin_ = 0;
  // Rest of a payload whose memory stays, which follows out_.
  absl::Span<const std::byte> rest_;
  bool waits_ = false;
  // A system call costs as much as a few kilobytes. Payload of such a frame, and all of them.
  static constexpr size_t kMostWaiting = 256;
  static constexpr size_t kMostWaitingInAll = 4096;
  bool refused_ = false;  // TrySend found no room since the last Poll
  uint64_t put_ = 0;      // bytes that went through out_ or past it
  // put_ at the end of each frame that the peer is not known to have consumed; taken_end_: of the
  // last one that it has.
  SlotQueue<uint64_t> ends_;
  uint64_t taken_end_ = 0;
  mutable uint64_t delivered_ = 0;  // last result of load(): never decreases
  absl::Duration round_trip_;

  // Numbers of frames: sent, acknowledged by the peer, consumed by this side, and of those,
  // reported to the peer.
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t taken_ = 0;
  uint64_t told_ = 0;
  size_t bytes_not_told_ = 0;
  bool awaited_ = false;  // the peer waits for an acknowledgement
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_
