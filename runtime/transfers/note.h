// SPDX-License-Identifier: Apache-2.0
//
// What two ranks tell each other of their transfers: each message between them is a note, or the
// bytes that the note before it speaks of. Pure.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace railhead::transfers {

struct Note {
  enum class Kind : uint32_t {
    kHello = 1,     // the sender looks after its transfers from now on
    kEager = 2,     // a transfer of `size` bytes with `tag`; they follow, if there are any
    kAnnounce = 3,  // a transfer of `size` bytes with `tag`, which the sender calls `id`
    kPull = 4,      // the receiver of `id` has a place for it
    kData = 5,      // `size` bytes of `id`, from `offset` on, follow
    kTaken = 6      // eager transfers of `size`, by EagerCost, have found their receives
  };

  Kind kind = Kind::kHello;
  int tag = 0;
  uint64_t size = 0;
  uint64_t id = 0;
  uint64_t offset = 0;

  bool operator==(const Note&) const = default;
};

inline constexpr size_t kNoteBytes = 32;
using NoteBytes = std::array<std::byte, kNoteBytes>;

NoteBytes Encode(const Note& note);
// Internal if it is not a note, or says what no rank says.
absl::StatusOr<Note> ParseNote(absl::Span<const std::byte> bytes);

// Transfers of up to so many bytes are sent before their receive is known.
inline constexpr size_t kMostEager = size_t{16} << 10;
// What a transfer that has not found its receive takes at the receiver, in bytes, and how much all
// of one sender may take; beyond that it announces them.
constexpr size_t EagerCost(uint64_t size) { return static_cast<size_t>(size) + 64; }
inline constexpr size_t kEagerRoom = size_t{1} << 20;

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_NOTE_H_
