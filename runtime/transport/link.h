// SPDX-License-Identifier: Apache-2.0
//
// What every transport looks like to the rails above it.
//
// A Link carries frames between this rank and one peer over one rail: reliably, in order, in both
// directions. It knows nothing of collectives, of other rails, or of what the bytes mean. A frame
// is a chunk of some transfer; its header says which one and where in it the payload belongs, so
// that the rails are free to send any chunk over any link.
//
// A link begins without a connection, and gets its first one as it gets another after that was lost
// (Reconnect). It stays the same object all the while.
//
// Threads: a Link is used by one thread at a time; Stats may be read by any thread at any time.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace railhead::transport {

// What a frame is for. Links only carry it.
enum class FrameKind : uint8_t {
  kData = 0,
  kPosted = 1,    // no payload; `posted` is the news
  kRailLost = 2,  // no payload; the sender has lost rail number `offset`
};
inline constexpr uint32_t kMaxFrameKind = 2;

// Names the place of a payload: bytes [offset, offset + payload) of transfer number `transfer`
// between this pair of ranks (each direction counts its own transfers from 0).
struct FrameHeader {
  uint64_t transfer = 0;
  uint64_t offset = 0;
  // The payload may have arrived before, over a link that was lost.
  bool repeated = false;
  // The sender keeps its memory until the frame is acknowledged: do not keep it waiting. It keeps
  // the values, too, until the peer is known to have them; those of a repeat may change at any
  // time.
  bool awaited = false;
  // Links only carry what follows.
  uint64_t call = 0;    // what the message belongs to (collectives/call.h)
  uint64_t size = 0;    // of the whole transfer, in bytes
  uint32_t posted = 0;  // receives that the sender has posted in all, modulo 2^32
  FrameKind kind = FrameKind::kData;
};

// Counters of one link since it was connected. Written by the link's thread alone.
struct LinkStats {
  std::atomic<uint64_t> transmit_bytes{0};  // payload handed to the wire
  std::atomic<uint64_t> receive_bytes{0};   // payload taken by the sink
  std::atomic<uint64_t> retransmits{0};     // known retransmissions of this link, where it can tell
  std::atomic<uint64_t> strangers{0};       // connections that were turned away
};

// Where arrived frames go; made for one Poll.
class FrameSink {
 public:
  // Takes one arrived frame. `payload` is valid only during the call. Returns false for "not yet":
  // the link keeps the frame, and offers it again at the next Poll; frames behind it wait too.
  using Take =
      absl::FunctionRef<bool(const FrameHeader& header, absl::Span<const std::byte> payload)>;
  // Where `size` bytes of payload may be written as they arrive, or null. They are then given to
  // Take at that very place. The memory is the link's to write until then, until it has lost its
  // connection, or until StopPlacing.
  using Place = absl::FunctionRef<std::byte*(const FrameHeader& header, size_t size)>;

  FrameSink(Take take, Place place) : take_(take), place_(place) {}
  // Without places. Not of another sink, whose places a copy must keep.
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

// What a wait is for. Waking for less spares those that sleep a wake-up for every frame they sent.
enum class Wake {
  kFrames,  // frames, what the peer tells of those it has taken, and room after TrySend said
            // "later"
  kAll,     // also that Flushed may be true, and load less
};

// A descriptor that people sleep on.
class WakeSource {
 public:
  virtual ~WakeSource() = default;

  // Readable when there may be something to do, or -1 where somebody must look.
  virtual int event_fd() const = 0;
  // It was readable. Who does not answer is woken again at once, perhaps for nothing.
  virtual void Answer(absl::Time now) = 0;
};

// Its descriptor stirs when Poll may have something to do.
class Link : public WakeSource {
 public:
  // The largest payload of one frame, in bytes.
  virtual size_t max_payload() const = 0;

  // Hands one frame to the link, which copies the payload (or has sent it) before it returns. Of an
  // awaited frame it may read the payload until it is Flushed, or has lost its connection.
  // Returns false when the link has no room now: poll and try again. An error ends the connection,
  // as one of Poll does.
  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header,
                                       absl::Span<const std::byte> payload) = 0;

  // Moves the link on without blocking: finishes sends, returns credits, offers arrived frames to
  // `sink`. Returns whether anything moved. An error ends the connection and names the peer's
  // address, the device and the cause; it is Unavailable when the network or the peer has ended it.
  virtual absl::StatusOr<bool> Poll(FrameSink sink) = 0;

  // From now on the link writes nothing to the place that it was given for a frame that has not
  // arrived whole; that frame is dropped. For one whose bytes have come over another link.
  virtual void StopPlacing() {}

  // Whether Poll costs no system call when nothing has come. The descriptor of a link where it does
  // is asked instead, and Poll is called when that has stirred.
  virtual bool polls_in_memory() const { return true; }

  // Frames that TrySend took and that the peer's sink is not known to have taken. Frames are taken
  // in their order.
  virtual uint64_t unacknowledged() const = 0;
  // Ends the connection, as if Poll had found it lost.
  virtual void Drop(absl::string_view why) = 0;
  // Whether the link has a connection. One that had none yet behaves like one that has lost it.
  virtual bool connected() const = 0;
  // Without a connection: works at a new connection without blocking. True: the
  // link is as if just connected, with nothing under way. False: not yet. An error says why not,
  // and is not final. Without calls nothing is tried.
  virtual absl::StatusOr<bool> Reconnect(absl::Time now) = 0;

  // True when nothing depends on further polling, unless the link gets lost: everything that
  // TrySend took is with the NIC or the kernel's socket, which read it from memory of their own or
  // the link's, and the peer was heard of just now or has it; and so are the acknowledgements that
  // the peer waits for. True of a link that is lost.
  virtual bool Flushed() const = 0;

  // What the link has carried and is to carry, in bytes.
  struct Load {
    uint64_t backlog = 0;    // of what TrySend took: not known to have reached the peer's machine
    uint64_t delivered = 0;  // known to have, since the link was connected, whatever it was
  };
  virtual Load load() const = 0;
  // How long a byte and its acknowledgement take where nothing queues, as far as the link knows.
  virtual absl::Duration round_trip() const { return absl::ZeroDuration(); }

  // How much the link should keep of what it cannot send at once: what one rail holds cannot go
  // over another. A link whose memory for sending is small anyway need not listen.
  virtual void SetHold(size_t /*bytes*/) {}

  // Whether frames were taken of which the peer has not been told: the next one in the other
  // direction does so in passing.
  virtual bool owes() const { return false; }
  // Tells the peer of them by itself. For who sleeps long, or goes.
  virtual absl::Status Acknowledge() { return absl::OkStatus(); }

  // Must come before each wait for the descriptor; after it, Poll once more before sleeping.
  virtual absl::Status Arm(Wake wake) = 0;

  virtual const LinkStats& stats() const = 0;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
