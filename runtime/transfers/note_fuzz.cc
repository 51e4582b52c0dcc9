// SPDX-License-Identifier: Apache-2.0
//
// Whatever a rank says of its transfers: it is understood as it was meant, or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/transfers/note.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace transfers = railhead::transfers;
  const auto note = transfers::ParseNote({reinterpret_cast<const std::byte*>(data), size});
  if (!note.ok()) return 0;
  const transfers::NoteBytes again = transfers::Encode(*note);
  if (size != again.size() || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}
