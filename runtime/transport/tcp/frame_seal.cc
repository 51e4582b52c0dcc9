// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/frame_seal.h"

#include <sodium/core.h>
#include <sodium/crypto_onetimeauth_poly1305.h>
#include <sodium/crypto_stream_chacha20.h>
#include <sodium/utils.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace railhead::transport {
namespace {

static_assert(crypto_onetimeauth_poly1305_BYTES == kSealSize);
static_assert(crypto_onetimeauth_poly1305_KEYBYTES == 32);
static_assert(crypto_stream_chacha20_KEYBYTES == 32 && crypto_stream_chacha20_NONCEBYTES == 8);
static_assert(std::endian::native == std::endian::little);

}  // namespace

FrameSealer::FrameSealer(absl::string_view key) {
  // Chooses the code for this CPU; may be called again and again, by any thread.
  static const int ready = ::sodium_init();
  static_cast<void>(ready);
  std::copy_n(key.begin(), std::min(key.size(), kKeySize), key_.begin());
  Draw();
}

void FrameSealer::Draw() {
  std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce;
  std::memcpy(nonce.data(), &number_, sizeof number_);
  ::crypto_stream_chacha20(keys_.data(), keys_.size(), nonce.data(), key_.data());
}

void FrameSealer::Next() {
  ++number_;
  Draw();
}

Seal FrameSealer::Sign(size_t key, absl::Span<const std::byte> bytes) const {
  Seal seal;
  ::crypto_onetimeauth_poly1305(reinterpret_cast<unsigned char*>(seal.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                keys_.data() + key * kKeySize);
  return seal;
}

Seal FrameSealer::OfHead(absl::Span<const std::byte> head) const { return Sign(0, head); }
Seal FrameSealer::OfPayload(absl::Span<const std::byte> payload) const { return Sign(1, payload); }

bool SameSeal(const Seal& seal, const std::byte* other) {
  return ::sodium_memcmp(seal.data(), other, seal.size()) == 0;
}

}  // namespace railhead::transport
