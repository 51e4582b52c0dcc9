// SPDX-License-Identifier: Apache-2.0
//
// Signatures of a connection's frames: Poly1305 with one-time keys. The keys of frame n are block n
// of a ChaCha20 stream under the connection's key of that direction, as in ChaCha20-Poly1305
// without encryption. So changed, missing, repeated or foreign frames are detected. Used by
// TcpWire.
//
// Header and payload are signed separately: the header places the payload, and is used before the
// payload has arrived.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/transport/connect/rail_handshake.h"

namespace railhead::transport {

inline constexpr size_t kSealSize = 16;
using Seal = std::array<std::byte, kSealSize>;

// Signs the frames of one direction, in order.
class FrameSealer {
 public:
  // `key` is the connection's key of that direction.
  explicit FrameSealer(absl::string_view key);

  // Seals of the current frame.
  Seal OfHead(absl::Span<const std::byte> head) const;
  Seal OfPayload(absl::Span<const std::byte> payload) const;
  void Next();

 private:
  static constexpr size_t kKeySize = 32;

  Seal Sign(size_t key, absl::Span<const std::byte> bytes) const;
  void Draw();

  std::array<unsigned char, kKeySize> key_{};
  uint64_t number_ = 0;
  std::array<unsigned char, 2 * kKeySize> keys_{};  // of the current frame
};

struct FrameSeals {
  explicit FrameSeals(const LineKeys& keys) : sent(keys.send), received(keys.receive) {}

  FrameSealer sent;
  FrameSealer received;
};

bool SameSeal(const Seal& seal, const std::byte* other);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_SEAL_H_
