// SPDX-License-Identifier: Apache-2.0
//
// Protection of the frames of a TCP connection in transit: none, signatures, or encryption. Chosen
// at the start of a communicator, applied by FrameSealer.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_PROTECTION_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_PROTECTION_H_

#include <cstdint>

namespace railhead::transport {

// Both sides use the same.
enum class FrameProtection : uint8_t {
  kNone,
  kSigned,            // Poly1305
  kChaCha20Poly1305,  // signed, and the payload encrypted
  kAes256Gcm,         // the same; faster, and not on every CPU (HasAes256Gcm)
};

// Returns true if this build and CPU can use kAes256Gcm.
bool HasAes256Gcm();

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_FRAME_PROTECTION_H_
