// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/frame_seal.h"

#include <sodium/core.h>
#include <sodium/crypto_aead_aes256gcm.h>
#include <sodium/crypto_aead_chacha20poly1305.h>
#include <sodium/crypto_onetimeauth_poly1305.h>
#include <sodium/crypto_stream_chacha20.h>
#include <sodium/utils.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace railhead::transport {
namespace {

static_assert(crypto_onetimeauth_poly1305_BYTES == kSealSize);
static_assert(crypto_onetimeauth_poly1305_KEYBYTES == 32);
static_assert(crypto_stream_chacha20_KEYBYTES == 32 && crypto_stream_chacha20_NONCEBYTES == 8);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32 &&
              crypto_aead_chacha20poly1305_ietf_NPUBBYTES == 12 &&
              crypto_aead_chacha20poly1305_ietf_ABYTES == kSealSize);
static_assert(crypto_aead_aes256gcm_KEYBYTES == 32 && crypto_aead_aes256gcm_NPUBBYTES == 12 &&
              crypto_aead_aes256gcm_ABYTES == kSealSize);
static_assert(std::is_trivially_copyable_v<crypto_aead_aes256gcm_state>);
static_assert(std::endian::native == std::endian::little);

// The block of the stream that no frame has.
constexpr uint64_t kCipherBlock = std::numeric_limits<uint64_t>::max();

// Chooses the code for this CPU; may be called again and again, by any thread.
void ChooseCode() {
  static const int ready = ::sodium_init();
  static_cast<void>(ready);
}

// Writes the first bytes of that block of the stream.
template <size_t kSize>
void DrawBlock(uint64_t number, const unsigned char* key, std::array<unsigned char, kSize>& block) {
  std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce;
  std::memcpy(nonce.data(), &number, sizeof number);
  ::crypto_stream_chacha20(block.data(), block.size(), nonce.data(), key);
}

template <class Bytes>
const crypto_aead_aes256gcm_state* AesState(const Bytes& bytes) {
  return reinterpret_cast<const crypto_aead_aes256gcm_state*>(bytes.data());
}

unsigned char* Raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* Raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

bool HasAes256Gcm() {
  ChooseCode();
  return ::crypto_aead_aes256gcm_is_available() == 1;
}

FrameSealer::FrameSealer(absl::string_view key, FrameProtection protection)
    : protection_(protection) {
  ChooseCode();
  std::copy_n(key.begin(), std::min(key.size(), kKeySize), key_.begin());
  Draw();
  if (!encrypts()) return;
  DrawBlock(kCipherBlock, key_.data(), cipher_key_);
  if (protection_ == FrameProtection::kAes256Gcm) {
    static_assert(sizeof(aes_) == sizeof(crypto_aead_aes256gcm_state));
    ::crypto_aead_aes256gcm_beforenm(reinterpret_cast<crypto_aead_aes256gcm_state*>(aes_.data()),
                                     cipher_key_.data());
  }
}

void FrameSealer::Draw() { DrawBlock(number_, key_.data(), keys_); }

void FrameSealer::Next() {
  ++number_;
  Draw();
}

std::array<unsigned char, FrameSealer::kNonceSize> FrameSealer::Nonce() const {
  std::array<unsigned char, kNonceSize> nonce{};
  std::memcpy(nonce.data(), &number_, sizeof number_);
  return nonce;
}

Seal FrameSealer::Sign(size_t key, absl::Span<const std::byte> bytes) const {
  Seal seal;
  ::crypto_onetimeauth_poly1305(Raw(seal.data()), Raw(bytes.data()), bytes.size(),
                                keys_.data() + key * kKeySize);
  return seal;
}

Seal FrameSealer::OfHead(absl::Span<const std::byte> head) const { return Sign(0, head); }
Seal FrameSealer::OfPayload(absl::Span<const std::byte> payload) const { return Sign(1, payload); }

Seal FrameSealer::Encrypt(absl::Span<const std::byte> payload, std::byte* out) const {
  Seal seal;
  std::byte nothing{};
  if (payload.empty()) out = &nothing;  // libsodium declares that it is never given null
  const auto nonce = Nonce();
  if (protection_ == FrameProtection::kAes256Gcm) {
    ::crypto_aead_aes256gcm_encrypt_detached_afternm(Raw(out), Raw(seal.data()), nullptr,
                                                     Raw(payload.data()), payload.size(), nullptr,
                                                     0, nullptr, nonce.data(), AesState(aes_));
  } else {
    ::crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        Raw(out), Raw(seal.data()), nullptr, Raw(payload.data()), payload.size(), nullptr, 0,
        nullptr, nonce.data(), cipher_key_.data());
  }
  return seal;
}

bool FrameSealer::Open(absl::Span<std::byte> payload, const Seal& seal) const {
  if (!encrypts()) return SameSeal(OfPayload(payload), seal.data());
  const auto nonce = Nonce();
  std::byte nothing{};
  unsigned char* const bytes = Raw(payload.empty() ? &nothing : payload.data());
  if (protection_ == FrameProtection::kAes256Gcm) {
    return ::crypto_aead_aes256gcm_decrypt_detached_afternm(bytes, nullptr, bytes, payload.size(),
                                                            Raw(seal.data()), nullptr, 0,
                                                            nonce.data(), AesState(aes_)) == 0;
  }
  return ::crypto_aead_chacha20poly1305_ietf_decrypt_detached(
             bytes, nullptr, bytes, payload.size(), Raw(seal.data()), nullptr, 0, nonce.data(),
             cipher_key_.data()) == 0;
}

bool SameSeal(const Seal& seal, const std::byte* other) {
  return ::sodium_memcmp(seal.data(), other, seal.size()) == 0;
}

}  // namespace railhead::transport
