// SPDX-License-Identifier: Apache-2.0
//
// Handle of a listener: the addresses and tokens with which a sender connects. NCCL carries its
// 128 bytes from the receiver's process to the sender's. Pure.
//
// It lists the receiver's rails of both kinds. The sender uses the rails that both have: RDMA rails
// if there are any, or else TCP rails. The token of each rail (transport/connect/rail_handshake.h)
// is derived from that of the handle, so rails connect without an earlier exchange.
#ifndef RAILHEAD_PLUGINS_NCCL_HANDLE_H_
#define RAILHEAD_PLUGINS_NCCL_HANDLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plugins/nccl/abi/net.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"

namespace railhead::nccl {

enum class RailKind : uint8_t { kTcp = 0, kVerbs = 1 };

// A rail of the receiver, and where it accepts connections.
struct HandleRail {
  RailKind kind = RailKind::kTcp;
  int rail = 0;  // at most kMostRail
  net::IpAddress ip;
  uint16_t port = 0;

  bool operator==(const HandleRail&) const = default;
};
inline constexpr int kMostRail = 127;

// Random bytes that name a listener.
inline constexpr size_t kTokenBaseBytes = 11;

struct Handle {
  std::string token;  // kTokenBaseBytes
  // The receiver's RAILHEAD_AUTH for frames; the stricter setting of both sides applies.
  config::FrameWish frames = config::FrameWish::kPlain;
  std::vector<HandleRail> rails;

  bool operator==(const Handle&) const = default;
};

using HandleBytes = std::array<char, abi::kHandleBytes>;

// Rails that do not fit are left out, the last ones first; `left_out` is their number.
struct EncodedHandle {
  HandleBytes bytes{};
  size_t left_out = 0;
};
EncodedHandle Encode(const Handle& handle);
// The error names the version of the other side if it is another one.
absl::StatusOr<Handle> ParseHandle(absl::Span<const char> bytes);

// Return the tokens of the two ends of a rail. The sender dials, because its token is the smaller
// one. `sender` distinguishes the senders of one listener.
std::string ReceiverToken(const std::string& base, RailKind kind, int rail);
std::string SenderToken(const std::string& base, RailKind kind, int rail, uint32_t sender);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_HANDLE_H_
