// SPDX-License-Identifier: Apache-2.0
//
// One connection of a link: it starts after the handshake, and ends with its first error or with
// its link. A reconnection is a new wire (recovering_link.h). Implemented by tcp/ and verbs/.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_WIRE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/net/fd.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/link.h"
#include "runtime/transport/link_waits.h"

namespace railhead::transport {

// Flags of a header on the wire: bits for `repeated` and `awaited`, then one for use by the
// transport, `kind` above them, and `lost_rails` in the upper half.
inline constexpr uint32_t kRepeatedFlag = 1;
inline constexpr uint32_t kAwaitedFlag = 2;
inline constexpr uint32_t kTransportsFlag = 4;
inline constexpr int kKindShift = 8;
inline constexpr uint32_t kKindMask = 0xff;
inline constexpr int kLostRailsShift = 16;

inline uint32_t FlagsOf(const FrameHeader& header) {
  return (header.repeated ? kRepeatedFlag : 0) | (header.awaited ? kAwaitedFlag : 0) |
         static_cast<uint32_t>(header.kind) << kKindShift |
         uint32_t{header.lost_rails} << kLostRailsShift;
}
// Returns true if all flags are known, or in `own`, and rails are named by repeated frames only.
inline bool AreFlags(uint32_t flags, uint32_t own = 0) {
  return (flags & 0xff & ~(kRepeatedFlag | kAwaitedFlag | own)) == 0 &&
         (flags >> kKindShift & kKindMask) <= kMaxFrameKind &&
         (flags >> kLostRailsShift == 0 || (flags & kRepeatedFlag) != 0);
}

// Converts a transport's header, whose fields have the same names.
template <class OnTheWire>
FrameHeader HeaderFrom(const OnTheWire& wire) {
  return {.transfer = wire.transfer,
          .offset = wire.offset,
          .repeated = (wire.flags & kRepeatedFlag) != 0,
          .awaited = (wire.flags & kAwaitedFlag) != 0,
          .call = wire.call,
          .size = wire.size,
          .posted = wire.posted,
          .kind = static_cast<FrameKind>(wire.flags >> kKindShift & kKindMask),
          .lost_rails = static_cast<uint16_t>(wire.flags >> kLostRailsShift)};
}

// After an error, only Abort may be called.
class Wire : public Carrier {
 public:
  virtual void Answer() {}
  // The connection is lost: requests in flight need not arrive.
  virtual void Abort() {}
};

// Parts of a link that its wires use. Both must outlive them.
struct WireOwner {
  LinkWaits* waits = nullptr;
  LinkStats* stats = nullptr;
};

// Makes the successive wires of one link, each from an authenticated connection.
class WireMaker {
 public:
  virtual ~WireMaker() = default;

  virtual size_t max_payload() const = 0;
  virtual bool polls_in_memory() const = 0;
  virtual absl::Time Now() const = 0;
  // Returns the error with its place.
  virtual absl::Status At(const absl::Status& status) const = 0;
  // Readable when HasNews may be true; -1: never.
  virtual int event_fd() const { return -1; }
  // Returns true if something happened since the last call that may make an attempt succeed.
  virtual bool HasNews() { return false; }

  // Starts to make a wire, replacing one in progress.
  virtual absl::Status Begin(Line line, const WireOwner& owner, absl::Time now) = 0;
  virtual bool begun() const = 0;
  virtual void GiveUp() = 0;
  // Advances it. Null: not ready. An error ends the attempt.
  virtual absl::StatusOr<std::unique_ptr<Wire>> Advance(absl::Time now) = 0;
  // As in Link, for a wire in progress.
  virtual void Answer() {}
  virtual absl::Status Arm(Wake /*wake*/) { return absl::OkStatus(); }
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_WIRE_H_
