// SPDX-License-Identifier: Apache-2.0
//
// Whatever a rank says of its transfers: it is understood as it was meant, or refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/transfers/note.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace transfers = railhead::transfers;
  const absl::Span<const std::byte> message(reinterpret_cast<const std::byte*>(data), size);
  const auto whole = transfers::ParseWhole(message);
  const auto first = transfers::ParseNote(message.first(std::min(size, transfers::kNoteBytes)));
  // A transfer is whole if its note and the message's size say so.
  using Kind = transfers::Note::Kind;
  const bool eager = first.ok() && first->kind == Kind::kEager;
  const size_t rest = eager && first->IsFollowed() ? static_cast<size_t>(first->size) : 0;
  if (whole.has_value() != (eager && size == transfers::kNoteBytes + rest)) std::abort();
  if (whole.has_value() && (whole->tag != first->tag || whole->bytes.size() != first->size)) {
    std::abort();
  }

  const auto note = transfers::ParseNote(message);
  if (!note.ok()) return 0;
  const transfers::NoteBytes again = transfers::Encode(*note);
  if (size != again.size() || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}
