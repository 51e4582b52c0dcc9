// SPDX-License-Identifier: Apache-2.0
//
// Transport interface. A Link carries frames between this rank and one peer over one rail:
// reliable, ordered, bidirectional. It is independent of collectives and other rails. A frame is
// one chunk of a transfer; its header gives transfer and offset, so rails::Peer may send any chunk
// over any link.
//
// Lifecycle: OpenTcpLink() or OpenVerbsLink() creates a link without a connection. Both ranks call
// Reconnect() until it returns true, and again after a loss; the object stays valid, and the caller
// resends frames that were not acknowledged.
//
//   absl::StatusOr<bool> sent = link->TrySend(header, payload);  // false: no room, Poll first
//
// Used by rails::Peer; implemented by RecoveringLink over tcp/ and verbs/. One thread at a time,
// except stats().
#ifndef RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace railhead::transport {

// Purpose of a frame, for rails; links only carry it.
enum class FrameKind : uint8_t {
  kData = 0,
  kPosted = 1,    // no payload; carries `posted`
  kRailLost = 2,  // no payload; the sender has lost rail number `offset`
  kProbe = 3,     // its payload is dropped: it shows that this rail carries large frames
  kMoved = 4,     // its payload is where to connect to the sender on rail number `offset` (MovedTo)
};
inline constexpr uint32_t kMaxFrameKind = 4;

// Memory of the peer that its NIC lets this side's NIC write: an address, and the key of its
// registration on the peer's device of the same rail.
struct RemotePlace {
  uint64_t address = 0;
  uint32_t key = 0;
};

// Place of a payload: bytes [offset, offset + payload) of transfer number `transfer` between this
// pair of ranks (each direction numbers its transfers from 0).
struct FrameHeader {
  uint64_t transfer = 0;
  uint64_t offset = 0;
  // The payload may have arrived before, over a lost link.
  bool repeated = false;
  // The sender keeps its memory until the frame is acknowledged, so acknowledge it soon. It also
  // keeps the values until the peer is known to have them; values of a repeated frame may change at
  // any time.
  bool awaited = false;
  // Fields that links only carry:
  uint64_t call = 0;    // call that the message belongs to (collectives/call.h)
  uint64_t size = 0;    // of the whole transfer, in bytes
  uint32_t posted = 0;  // total receives posted by the sender, modulo 2^32
  FrameKind kind = FrameKind::kData;
  // The payload is in the transfer's memory already; the sink gets its size only.
  bool placed = false;
  // Bits of the rails that lost a repeated frame (LostRailBit); 0 if its memory is not written.
  uint16_t lost_rails = 0;
  // For the sender's link: where the peer's NIC is to write the payload, if it can. Not carried.
  std::optional<RemotePlace> place = std::nullopt;
};

// Bit of a rail in FrameHeader::lost_rails. The last one is shared by all further rails.
inline constexpr size_t kLostRailBits = 16;
constexpr uint16_t LostRailBit(size_t rail) {
  return static_cast<uint16_t>(1U << (rail < kLostRailBits ? rail : kLostRailBits - 1));
}

// Counters of one link since it was created. Written by the link's thread only.
struct LinkStats {
  std::atomic<uint64_t> transmit_bytes{0};  // payload passed to the network
  std::atomic<uint64_t> receive_bytes{0};   // payload consumed by the sink
  std::atomic<uint64_t> retransmits{0};     // retransmissions of this link, if it can count them
  std::atomic<uint64_t> strangers{0};       // rejected connections
};

// Consumer of arrived frames; created for one Poll.
class FrameSink {
 public:
  // Consumes one frame. `payload` is valid during the call only; of a `placed` frame it has a size
  // and no data. Returns false to defer: the link
  // keeps the frame and offers it again at the next Poll; later frames wait, too.
  using Take =
      absl::FunctionRef<bool(const FrameHeader& header, absl::Span<const std::byte> payload)>;
  // Returns memory for `size` bytes of payload to be written as they arrive, or null. Take then
  // gets the payload at that address. The link may write there until then, until it loses its
  // connection, or until StopPlacing.
  using Place = absl::FunctionRef<std::byte*(const FrameHeader& header, size_t size)>;

  FrameSink(Take take, Place place) : take_(take), place_(place) {}
  // Without Place. Not for another sink, whose Place a copy must keep.
  template <class Taker>
  requires(!std::is_same_v<std::remove_cvref_t<Taker>, FrameSink> &&
           std::is_invocable_r_v<bool, Taker&, const FrameHeader&, absl::Span<const std::byte>>)
      // As FunctionRef does it.
      // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor,bugprone-forwarding-reference-overload)
      FrameSink(Taker&& taker)
      : take_(taker), place_(kNowhere) {}

  bool operator()(const FrameHeader& header, absl::Span<const std::byte> payload) const {
    return take_(header, payload);
  }
  std::byte* PlaceFor(const FrameHeader& header, size_t size) const { return place_(header, size); }

 private:
  static constexpr auto kNowhere = [](const FrameHeader&, size_t) -> std::byte* { return nullptr; };

  Take take_;
  Place place_;
};

// Purpose of a wait. kFrames saves sleeping callers a wake-up per sent frame.
enum class Wake {
  kFrames,  // frames, acknowledgements, and room after TrySend returned false
  kAll,     // also changes of Flushed() and load()
};

// The interface that a link shares with its connections (wire.h).
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Passes one frame to the link, which copies or sends the payload before it returns; it may read
  // the payload of an awaited frame until Flushed() or loss of the connection. Returns false if the
  // link has no room: Poll and try again. Errors end the connection, as in Poll. A small frame may
  // wait for the next one, until Push or Poll.
  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header,
                                       absl::Span<const std::byte> payload) = 0;
  // Sends frames that wait for the next one.
  virtual absl::Status Push() { return absl::OkStatus(); }

  struct Report {
    // True if anything moved. An error ends the connection and names the peer's address, the device
    // and the cause; it is Unavailable if the network or the peer ended it.
    absl::StatusOr<bool> moved;
    // Number of frames sent that the peer's sink is not known to have consumed, also after an
    // error; all, if there was no connection. Frames are consumed in order.
    uint64_t unacknowledged = UINT64_MAX;
    // Frames were consumed without the peer being notified yet: the next frame in the other
    // direction acknowledges them.
    bool owes = false;
  };
  // Advances the link without blocking: completes sends, returns credits, offers arrived frames to
  // `sink`.
  virtual Report Poll(FrameSink sink) = 0;

  // Stops writing to the memory given for a frame that has not arrived completely, and drops that
  // frame: its bytes have come over another link.
  virtual void StopPlacing() {}

  // Returns true if nothing depends on further polling, unless the link is lost: all sent frames
  // are in memory of the NIC, the kernel or the link, and the peer has them or was alive recently;
  // and acknowledgements that the peer waits for are sent, too. True for a lost link.
  virtual bool Flushed() const = 0;

  // Bytes carried and to be carried.
  struct Load {
    uint64_t backlog = 0;    // of sent frames: not known to have reached the peer's machine
    uint64_t delivered = 0;  // known to have reached it since the connection
    // Estimate for a byte and its acknowledgement without queueing; zero if unknown.
    absl::Duration round_trip = absl::ZeroDuration();
  };
  virtual Load load() const = 0;

  // Limits the bytes that the link buffers unsent, because they can no longer go over another rail.
  // A link with little memory for sending may ignore it.
  virtual void SetHold(size_t /*bytes*/) {}

  // Sends an acknowledgement without a frame. Call it before a long sleep or the end.
  virtual absl::Status Acknowledge() { return absl::OkStatus(); }

  // Call before each wait for the link's events; then Poll once more before sleeping.
  virtual absl::Status Arm(Wake wake) = 0;
};

class Link : public Carrier {
 public:
  // Registers all that Poll may wait for in this epoll, with `tag` as its data, also what it will
  // wait for later; -1: in none. Replaces the last call; the epoll must stay open until the next,
  // or until the link is destroyed. Returns false if there would be no events, so that the caller
  // must poll.
  virtual absl::StatusOr<bool> WakeBy(int epoll, void* tag) = 0;
  // Call after an event; otherwise it stays pending, and the next sleep ends at once.
  virtual void Answer(absl::Time now) = 0;

  // The largest payload of one frame, in bytes.
  virtual size_t max_payload() const = 0;

  // Returns true if Poll without arrivals costs no system call. For other links the caller waits
  // for an event before it calls Poll.
  virtual bool polls_in_memory() const { return true; }

  // Ends the connection, as if Poll had failed.
  virtual void Drop(absl::string_view why) = 0;
  // Returns true if the link has a connection. Before its first connection it behaves as after a
  // loss.
  virtual bool connected() const = 0;
  // Without a connection: advances the setup of a new one without blocking. True: connected, with
  // nothing in flight. False: not yet. An error is the present cause, and not final:
  // DeadlineExceeded if the peer's process is there, but does not work on this connection; it may
  // not have called yet. Nothing happens between calls.
  virtual absl::StatusOr<bool> Reconnect(absl::Time now) = 0;

  // The address at which the peer is to connect, if this side's rail had no address when the link
  // was opened, or has another one now; otherwise "".
  virtual std::string MovedTo() const { return ""; }
  // The peer's MovedTo(), which has come over another rail. Untrusted.
  virtual void PeerMovedTo(absl::string_view /*address*/) {}

  virtual const LinkStats& stats() const = 0;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
