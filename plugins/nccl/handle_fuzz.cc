// SPDX-License-Identifier: Apache-2.0
//
// Fuzz test of ParseHandle, whose input comes from another process. Encoding a parsed handle and
// parsing it again gives the same handle.
#include <cstdint>
#include <cstdlib>

#include "plugins/nccl/handle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using railhead::nccl::Encode;
  using railhead::nccl::EncodedHandle;
  using railhead::nccl::ParseHandle;
  const auto handle = ParseHandle({reinterpret_cast<const char*>(data), size});
  if (!handle.ok()) return 0;
  const EncodedHandle encoded = Encode(*handle);
  if (encoded.left_out > 0) return 0;
  const auto again = ParseHandle(encoded.bytes);
  if (!again.ok() || *again != *handle) std::abort();
  return 0;
}
