// SPDX-License-Identifier: Apache-2.0
//
// What every transport looks like to the rails above it.
//
// A Link carries frames between this rank and one peer over one rail: reliably, in order, in both
// directions. It knows nothing of collectives, of other rails, or of what the bytes mean. A frame
// is a chunk of some transfer; its header says which one and where in it the payload belongs, so
// that the rails are free to send any chunk over any link.
//
// Life of a link: Transport::Open makes an Endpoint (memory registered, queue pair or listening
// socket created). The bootstrap carries Endpoint::Address to the peer. Endpoint::Connect, called
// on both sides with the other's address, turns the endpoint into a Link.
//
// Threads: a Link is used by one thread at a time; Stats may be read by any thread at any time.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
#define RAILHEAD_RUNTIME_TRANSPORT_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace railhead::transport {

// Names the place of a payload: bytes [offset, offset + size) of transfer number `transfer` between
// this pair of ranks (each direction counts its own transfers from 0).
struct FrameHeader {
  uint64_t transfer = 0;
  uint64_t offset = 0;
};

// Counters of one link since it was connected. Written by the link's thread alone.
struct LinkStats {
  std::atomic<uint64_t> transmit_bytes{0};  // payload handed to the wire
  std::atomic<uint64_t> receive_bytes{0};   // payload taken by the sink
  std::atomic<uint64_t> retransmits{0};     // known retransmissions of this link, where it can tell
};

// Takes one arrived frame. `payload` is valid only during the call. Returns false for "not yet":
// the link keeps the frame, and offers it again at the next Poll; frames behind it wait too.
using FrameSink =
    absl::FunctionRef<bool(const FrameHeader& header, absl::Span<const std::byte> payload)>;

class Link {
 public:
  virtual ~Link() = default;

  // The largest payload of one frame, in bytes.
  virtual size_t max_payload() const = 0;

  // Hands one frame to the link, which copies the payload (or has sent it) before it returns.
  // Returns false when the link has no room now: poll and try again. An error is final for the
  // link.
  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header,
                                       absl::Span<const std::byte> payload) = 0;

  // Moves the link on without blocking: finishes sends, returns credits, offers arrived frames to
  // `sink`. Returns whether anything moved. An error is final for the link and names the peer's
  // address, the device and the cause.
  virtual absl::StatusOr<bool> Poll(FrameSink sink) = 0;

  // True when everything that TrySend took has left this rank's responsibility (acknowledged by the
  // peer's NIC, or accepted by the kernel's socket).
  virtual bool Flushed() const = 0;

  // File descriptor that becomes readable when Poll may have something to do, or -1 when the link
  // must be polled. Arm() is called once before each wait on it; after Arm, Poll once more before
  // sleeping.
  virtual int event_fd() const = 0;
  virtual absl::Status Arm() = 0;

  virtual const LinkStats& stats() const = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // Opaque bytes that the peer's Connect needs. Untrusted on arrival: Connect checks every field.
  virtual std::string Address() const = 0;

  // Connects to the peer's endpoint; called once, on both sides, after the exchange of addresses.
  // Returns DeadlineExceeded when the peer does not answer in time.
  virtual absl::StatusOr<std::unique_ptr<Link>> Connect(absl::string_view peer_address,
                                                        absl::Time deadline) = 0;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_LINK_H_
