// SPDX-License-Identifier: Apache-2.0
//
// One connection of a link, which has one life: it begins when both sides have heard each other,
// and ends with its first error or with its link. What comes after that is another wire
// (recovering_link.h).
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
#include "runtime/transport/door/door.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// The flags of a header as they travel: bits of `repeated` and `awaited`, then some that a
// transport may use for itself, and `kind` above them.
inline constexpr uint32_t kRepeatedFlag = 1;
inline constexpr uint32_t kAwaitedFlag = 2;
inline constexpr uint32_t kTransportsFlag = 4;
inline constexpr int kKindShift = 8;

inline uint32_t FlagsOf(const FrameHeader& header) {
  return (header.repeated ? kRepeatedFlag : 0) | (header.awaited ? kAwaitedFlag : 0) |
         static_cast<uint32_t>(header.kind) << kKindShift;
}
// Whether there are no flags but known ones, besides `own`.
inline bool AreFlags(uint32_t flags, uint32_t own = 0) {
  return (flags & 0xff & ~(kRepeatedFlag | kAwaitedFlag | own)) == 0 &&
         flags >> kKindShift <= kMaxFrameKind;
}

// What arrived in a transport's own header, whose fields have the same names.
template <class OnTheWire>
FrameHeader HeaderFrom(const OnTheWire& wire) {
  return {wire.transfer,
          wire.offset,
          (wire.flags & kRepeatedFlag) != 0,
          (wire.flags & kAwaitedFlag) != 0,
          wire.call,
          wire.size,
          wire.posted,
          static_cast<FrameKind>(wire.flags >> kKindShift)};
}

// Its functions are those of Link. After an error none is called but Abort.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header,
                                       absl::Span<const std::byte> payload) = 0;
  virtual absl::StatusOr<bool> Poll(FrameSink sink) = 0;
  virtual void StopPlacing() {}
  virtual uint64_t unacknowledged() const = 0;
  virtual bool Flushed() const = 0;
  virtual Link::Load load() const = 0;
  virtual absl::Duration round_trip() const { return absl::ZeroDuration(); }
  virtual void SetHold(size_t bytes) = 0;
  virtual bool owes() const = 0;
  virtual absl::Status Acknowledge() = 0;
  virtual absl::Status Arm(Wake wake) = 0;
  virtual void Answer() {}
  // It is lost, and goes: what is under way need not arrive any more.
  virtual void Abort() {}
};

// What wires have of their link. Both outlive them.
struct WireOwner {
  int epoll = -1;  // stands for them in other people's waits
  LinkStats* stats = nullptr;
};

// Makes one link's wires, one after the other, each of a line that came through the door.
class WireMaker {
 public:
  virtual ~WireMaker() = default;

  virtual size_t max_payload() const = 0;
  virtual bool polls_in_memory() const = 0;
  virtual absl::Time Now() const = 0;
  // An error, with where it happened.
  virtual absl::Status At(const absl::Status& status) const = 0;
  // Readable when HasNews may be true; -1: never.
  virtual int event_fd() const { return -1; }
  // Whether something has happened since the last call because of which an attempt may succeed now.
  virtual bool HasNews() { return false; }

  // Begins to make a wire, in place of what was begun before.
  virtual absl::Status Begin(Line line, const WireOwner& owner, absl::Time now) = 0;
  virtual bool begun() const = 0;
  virtual void GiveUp() = 0;
  // Works at it. Null: it is not there yet. An error is the end of the attempt.
  virtual absl::StatusOr<std::unique_ptr<Wire>> Advance(absl::Time now) = 0;
  // As of a link, for what is begun.
  virtual void Answer() {}
  virtual absl::Status Arm(Wake /*wake*/) { return absl::OkStatus(); }
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_WIRE_H_
