// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/mac.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>

#include "runtime/base/wire.h"

namespace railhead {
namespace {

static_assert(crypto_auth_hmacsha256_BYTES == kMacSize);

const unsigned char* BytesOf(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string Mac(absl::string_view key, absl::string_view label,
                std::initializer_list<absl::string_view> parts) {
  WireWriter writer;
  writer.String(label);
  for (const absl::string_view part : parts) writer.String(part);
  const std::string bytes = writer.Take();
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, BytesOf(key), key.size());
  crypto_auth_hmacsha256_update(&state, BytesOf(bytes), bytes.size());
  std::string out(kMacSize, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

bool SameMac(absl::string_view a, absl::string_view b) {
  return a.size() == kMacSize && b.size() == kMacSize &&
         ::sodium_memcmp(a.data(), b.data(), kMacSize) == 0;
}

}  // namespace railhead
