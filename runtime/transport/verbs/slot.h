// SPDX-License-Identifier: Apache-2.0
//
// Wire format between two verbs links: layout of a slot and of the immediate value.
//
// A receiver owns a ring of slots that its peer writes to. Slot k of a ring with payload size P is
// bytes [k * SlotStride(P), (k + 1) * SlotStride(P)). A frame starts at kHeaderOffset: header and
// payload are one contiguous write, and the payload starts on a cache line.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SLOT_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SLOT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace railhead::transport::verbs {

static_assert(std::endian::native == std::endian::little,
              "slot headers are little-endian and are copied to the wire as they are");

// Little-endian, 56 bytes. Fields have the meaning of FrameHeader's.
struct SlotHeader {
  uint64_t transfer = 0;
  uint64_t offset = 0;
  uint64_t call = 0;
  uint64_t size = 0;
  uint32_t payload = 0;   // bytes that follow
  uint32_t sequence = 0;  // the frame's number, as in the immediate value
  uint32_t consumed = 0;  // total frames of the other direction that the sender consumed
  uint32_t posted = 0;
  uint32_t flags = 0;  // from FlagsOf
  uint32_t reserved = 0;
};
static_assert(sizeof(SlotHeader) == 56);

// Payload of a slot of this side's rings, in bytes. 64 KiB amortize the cost of a work request.
inline constexpr uint32_t kSlotPayload = 64 * 1024;

inline constexpr size_t kPayloadOffset = 64;
inline constexpr size_t kHeaderOffset = kPayloadOffset - sizeof(SlotHeader);

constexpr size_t SlotStride(size_t payload_size) { return kPayloadOffset + payload_size; }

// Kind of a message, in its immediate value: two bits of kind, 30 bits of counter. Counters wrap,
// so ring sizes are powers of two.
enum class MessageKind : uint32_t {
  kFrame = 0,     // counter: the frame's number; its slot is that modulo the ring's size
  kConsumed = 1,  // counter: as SlotHeader::consumed; no payload
  kGreeting = 2,  // the sender's queue pair is up; no payload, counter 0
};

inline constexpr uint32_t kCounterMask = (uint32_t{1} << 30) - 1;

// Number of a link's first frame: shortly before the counter wraps, so that every link exercises
// the wrap, not only one that has run for weeks.
inline constexpr uint64_t kFirstFrame = kCounterMask - 63;

constexpr uint32_t PackImmediate(MessageKind kind, uint64_t counter) {
  return static_cast<uint32_t>(kind) << 30 | (static_cast<uint32_t>(counter) & kCounterMask);
}
constexpr uint32_t ImmediateKind(uint32_t immediate) { return immediate >> 30; }
constexpr uint32_t ImmediateCounter(uint32_t immediate) { return immediate & kCounterMask; }

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SLOT_H_
