// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/note.h"

#include <array>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/wire.h"

namespace railhead::transfers {
namespace {

// Little-endian, like all data between ranks.
void Put(NoteBytes& bytes, size_t at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

// Bytes 16 to 39 are the bytes of a small transfer, or numbers, or zero.
constexpr size_t kRest = 16;

// At most as many as the rest.
bool AreZero(absl::Span<const std::byte> bytes) {
  static constexpr std::array<std::byte, kNoteBytes - kRest> kZeros{};
  return std::memcmp(bytes.data(), kZeros.data(), bytes.size()) == 0;
}

bool IsRight(const Note& note) {
  constexpr uint64_t kMost = std::numeric_limits<size_t>::max() / 2;
  if (note.size > kMost || note.offset > kMost - note.size) return false;
  switch (note.kind) {
    case Note::Kind::kHello:
      return note == Note{};
    case Note::Kind::kEager:
      return note.tag >= 0 && note.size <= kMostEager && note.id == 0 && note.offset == 0;
    case Note::Kind::kAnnounce:
      return note.tag >= 0 && note.offset == 0;
    case Note::Kind::kPull:
      return note.tag == 0 && note.size == 0 && note.offset == 0;
    case Note::Kind::kData:
      return note.tag == 0 && note.size > 0;
    case Note::Kind::kTaken:
      return note.tag == 0 && note.id == 0 && note.offset == 0;
  }
  return false;
}

}  // namespace

NoteBytes Encode(const Note& note) {
  NoteBytes bytes{};
  Put(bytes, 0, static_cast<uint32_t>(note.kind), 4);
  Put(bytes, 4, static_cast<uint32_t>(note.tag), 4);
  Put(bytes, 8, note.size, 8);
  if (note.kind == Note::Kind::kEager) {
    std::memcpy(bytes.data() + kRest, note.inlined.data(), note.inlined.size());
    return bytes;
  }
  Put(bytes, 16, note.id, 8);
  Put(bytes, 24, note.offset, 8);
  return bytes;
}

absl::StatusOr<Note> ParseNote(absl::Span<const std::byte> bytes) {
  WireReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Note note;
  note.kind = static_cast<Note::Kind>(reader.U32());
  note.tag = static_cast<int>(reader.U32());
  note.size = reader.U64();
  size_t zeros_from = kRest;
  if (note.kind != Note::Kind::kEager) {
    note.id = reader.U64();
    note.offset = reader.U64();
    zeros_from = 32;
  } else if (!note.IsFollowed() && bytes.size() == kNoteBytes) {
    std::memcpy(note.inlined.data(), bytes.data() + kRest, note.inlined.size());
    zeros_from = kRest + static_cast<size_t>(note.size);
  }
  if (!reader.ok() || bytes.size() != kNoteBytes || !AreZero(bytes.subspan(zeros_from)) ||
      !IsRight(note)) {
    return absl::InternalError("its message about transfers is malformed");
  }
  return note;
}

}  // namespace railhead::transfers
