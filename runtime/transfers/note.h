// SPDX-License-Identifier: Apache-2.0
//
// Protocol of transfers between two ranks: each message is a note, or the bytes announced by the
// note before it. Pure. Used by Engine.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace railhead::transfers {

struct Note {
  enum class Kind : uint32_t {
    kHello = 1,  // the sender runs its transfers from now on
    kEager = 2,  // a transfer of `size` bytes with `tag`; the bytes follow, unless they are inlined
    kAnnounce = 3,  // a transfer of `size` bytes with `tag`; the sender numbers it `id`
    // The receiver of `id` has memory for it: at `offset` of its memory number `size`, or anywhere
    // if that is 0.
    kPull = 4,
    kData = 5,   // `size` bytes of `id` follow, starting at `offset`
    kTaken = 6,  // eager transfers of total cost `size` (EagerCost) found their receives
    // The sender's registered memory number `id` begins at address `offset`; `tag` is MemoryTag,
    // and `size` has the keys of kKeys rails, the first one in its lower half; 0: no such rail.
    kMemory = 7
  };
  static constexpr size_t kKeys = 2;
  static constexpr int kMostRails = 32;  // by place in the list of both sides
  static int MemoryTag(size_t first_rail, bool on_device) {
    return static_cast<int>(first_rail) * 2 + (on_device ? 1 : 0);
  }
  size_t FirstRail() const { return static_cast<size_t>(tag / 2); }
  bool IsOnDevice() const { return tag % 2 != 0; }

  Kind kind = Kind::kHello;
  int tag = 0;
  uint64_t size = 0;
  uint64_t id = 0;
  uint64_t offset = 0;
  // For kEager with at most kMostInlined bytes: the bytes, then zeros.
  static constexpr size_t kMostInlined = 24;
  std::array<std::byte, kMostInlined> inlined{};

  // Returns true if a message with the bytes of the transfer follows.
  bool IsFollowed() const {
    return kind == Kind::kData || (kind == Kind::kEager && size > kMostInlined);
  }
  bool operator==(const Note&) const = default;
};

inline constexpr size_t kNoteBytes = 40;  // fits into a mailbox's slot header
using NoteBytes = std::array<std::byte, kNoteBytes>;

NoteBytes Encode(const Note& note);
// As Encode, for kEager, without a Note: most notes are such. `data` has `size` bytes, of which at
// most kMostInlined are read.
NoteBytes EncodeEager(int tag, uint64_t size, const std::byte* data);
// Returns Internal if it is not a note, or not one that a rank may send.
absl::StatusOr<Note> ParseNote(absl::Span<const std::byte> bytes);

// A transfer whose note and bytes are in one message. `bytes` are in the message.
struct WholeTransfer {
  int tag = 0;
  absl::Span<const std::byte> bytes;
};
// Returns the transfer if the message is one, as most are; then its first kNoteBytes are a note.
// Returns nullopt for every other message, also if it is malformed: see ParseNote.
std::optional<WholeTransfer> ParseWhole(absl::Span<const std::byte> message);

// Maximum size in bytes of transfers that are sent before their receive is known: over rails, and
// in memory, where a question takes no time, and a message that waits is copied once more.
inline constexpr size_t kMostEager = size_t{256} << 10;
inline constexpr size_t kMostEagerInMemory = size_t{16} << 10;
// Memory of a transfer that waits for its receive, in bytes, and its limit at the receiver for each
// sender; beyond that, the sender announces transfers.
constexpr size_t EagerCost(uint64_t size) { return static_cast<size_t>(size) + 64; }
inline constexpr size_t kEagerRoom = size_t{1} << 20;

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_
