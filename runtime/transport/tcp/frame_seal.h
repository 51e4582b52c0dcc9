// SPDX-License-Identifier: Apache-2.0
//
// Protection of a connection's frames: signatures, and encryption of payloads if wanted. Used by
// TcpWire.
//
// Signatures are Poly1305 with one-time keys. The keys of frame n are block n of a ChaCha20 stream
// under the connection's key of that direction, as in ChaCha20-Poly1305 without encryption. So
// changed, missing, repeated or foreign frames are detected.
//
// Header and payload are signed separately: the header places the payload, and is used before the
// payload has arrived. The header's signature covers that of the payload.
//
// An encrypted payload has the tag of its cipher instead, under a key that is the last block of the
// same stream, with the frame's number as nonce. Headers are signed, not encrypted.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/tcp/frame_protection.h"

namespace railhead::transport {

inline constexpr size_t kSealSize = 16;
using Seal = std::array<std::byte, kSealSize>;

// Protects the frames of one direction, in order.
class FrameSealer {
 public:
  // `key` is the connection's key of that direction. `protection` is not kNone.
  explicit FrameSealer(absl::string_view key,
                       FrameProtection protection = FrameProtection::kSigned);

  bool encrypts() const { return protection_ != FrameProtection::kSigned; }

  // Seals of the current frame.
  Seal OfHead(absl::Span<const std::byte> head) const;
  // Only if !encrypts().
  Seal OfPayload(absl::Span<const std::byte> payload) const;
  // Only if encrypts(): writes as many bytes to `out`, and returns their seal.
  Seal Encrypt(absl::Span<const std::byte> payload, std::byte* out) const;
  // Returns true if this is the payload that the peer has sealed; decrypts it, in place, if
  // encrypts(). Otherwise the contents of `payload` are undefined.
  bool Open(absl::Span<std::byte> payload, const Seal& seal) const;
  void Next();

 private:
  static constexpr size_t kKeySize = 32;
  static constexpr size_t kNonceSize = 12;
  static constexpr size_t kAesStateSize = 512;

  Seal Sign(size_t key, absl::Span<const std::byte> bytes) const;
  void Draw();
  std::array<unsigned char, kNonceSize> Nonce() const;

  FrameProtection protection_;
  std::array<unsigned char, kKeySize> key_{};
  uint64_t number_ = 0;
  std::array<unsigned char, 2 * kKeySize> keys_{};  // of the current frame
  // The key of payloads, if encrypts(), and what AES has made of it.
  std::array<unsigned char, kKeySize> cipher_key_{};
  alignas(16) std::array<unsigned char, kAesStateSize> aes_{};
};

struct FrameSeals {
  explicit FrameSeals(const LineKeys& keys, FrameProtection protection = FrameProtection::kSigned)
      : sent(keys.send, protection), received(keys.receive, protection) {}

  FrameSealer sent;
  FrameSealer received;
};

bool SameSeal(const Seal& seal, const std::byte* other);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_
