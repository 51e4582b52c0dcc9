// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/note.h"

#include <bit>
#include <cstring>
#include <limits>

#include "absl/status/status.h"

namespace railhead::transfers {
namespace {

// Little-endian, like all data between ranks. Bytes 16 to 39 are the bytes of a small transfer, or
// numbers, or zero.
static_assert(std::endian::native == std::endian::little);
constexpr size_t kRest = 16;

template <class Value>
void Put(NoteBytes& bytes, size_t at, Value value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class Value>
void Get(absl::Span<const std::byte> bytes, size_t at, Value& value) {
  std::memcpy(&value, bytes.data() + at, sizeof value);
}

// Returns true if the bytes of a note from `from` on are zero.
bool AreZero(absl::Span<const std::byte> bytes, size_t from) {
  uint64_t word = 0;
  for (size_t end = kNoteBytes; end > from; end -= sizeof word) {
    const size_t begin = end - sizeof word;
    Get(bytes, begin, word);
    if (begin < from) word >>= 8 * (from - begin);
    if (word != 0) return false;
  }
  return true;
}

bool IsRight(const Note& note) {
  constexpr uint64_t kMost = std::numeric_limits<size_t>::max() / 2;
  if (note.kind == Note::Kind::kMemory) {
    return note.id != 0 && note.tag >= 0 && note.tag < 2 * Note::kMostRails;
  }
  if (note.size > kMost || note.offset > kMost - note.size) return false;
  switch (note.kind) {
    case Note::Kind::kHello:
      return note == Note{};
    case Note::Kind::kEager:
      return note.tag >= 0 && note.size <= kMostEager && note.id == 0 && note.offset == 0;
    case Note::Kind::kAnnounce:
      return note.tag >= 0 && note.offset == 0;
    case Note::Kind::kPull:
      return note.tag == 0 && (note.size != 0 || note.offset == 0);
    case Note::Kind::kData:
      return note.tag == 0 && note.size > 0;
    case Note::Kind::kTaken:
      return note.tag == 0 && note.id == 0 && note.offset == 0;
    case Note::Kind::kMemory:
      break;  // above
  }
  return false;
}

}  // namespace

NoteBytes EncodeEager(int tag, uint64_t size, const std::byte* data) {
  NoteBytes bytes{};
  Put(bytes, 0, Note::Kind::kEager);
  Put(bytes, 4, tag);
  Put(bytes, 8, size);
  if (size > 0 && size <= Note::kMostInlined) std::memcpy(bytes.data() + kRest, data, size);
  return bytes;
}

NoteBytes Encode(const Note& note) {
  if (note.kind == Note::Kind::kEager) {
    return EncodeEager(note.tag, note.size, note.inlined.data());
  }
  NoteBytes bytes{};
  Put(bytes, 0, note.kind);
  Put(bytes, 4, note.tag);
  Put(bytes, 8, note.size);
  Put(bytes, 16, note.id);
  Put(bytes, 24, note.offset);
  return bytes;
}

absl::StatusOr<Note> ParseNote(absl::Span<const std::byte> bytes) {
  const auto malformed = [] {
    return absl::InternalError("its message about transfers is malformed");
  };
  if (bytes.size() != kNoteBytes) return malformed();
  Note note;
  Get(bytes, 0, note.kind);
  Get(bytes, 4, note.tag);
  Get(bytes, 8, note.size);
  size_t zeros_from = kRest;
  if (note.kind != Note::Kind::kEager) {
    Get(bytes, 16, note.id);
    Get(bytes, 24, note.offset);
    zeros_from = 32;
  } else if (!note.IsFollowed()) {
    std::memcpy(note.inlined.data(), bytes.data() + kRest, note.inlined.size());
    zeros_from = kRest + static_cast<size_t>(note.size);
  }
  if (!AreZero(bytes, zeros_from) || !IsRight(note)) return malformed();
  return note;
}

std::optional<WholeTransfer> ParseWhole(absl::Span<const std::byte> message) {
  if (message.size() < kNoteBytes) return std::nullopt;
  Note::Kind kind{};
  int tag = 0;
  uint64_t size = 0;
  Get(message, 0, kind);
  Get(message, 4, tag);
  Get(message, 8, size);
  if (kind != Note::Kind::kEager || tag < 0 || size > kMostEager) return std::nullopt;
  const auto bytes = static_cast<size_t>(size);
  const bool inlined = bytes <= Note::kMostInlined;
  if (message.size() != kNoteBytes + (inlined ? 0 : bytes)) return std::nullopt;
  if (!AreZero(message, inlined ? kRest + bytes : kRest)) return std::nullopt;
  return WholeTransfer{tag, message.subspan(inlined ? kRest : kNoteBytes, bytes)};
}

}  // namespace railhead::transfers
