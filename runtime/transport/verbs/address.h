// SPDX-License-Identifier: Apache-2.0
//
// What a side of a verbs link tells its peer, and its form as bytes. The bytes come from another
// machine: ParseAddress checks every field.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_ADDRESS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_ADDRESS_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/gid.h"

namespace railhead::transport::verbs {

inline constexpr uint32_t kMinSlots = 4;
inline constexpr uint32_t kMaxSlots = 64;
inline constexpr uint32_t kMinSlotPayload = 4096;
inline constexpr uint32_t kMaxSlotPayload = 1 << 20;

using CmToken = std::array<uint8_t, 16>;

// Where a side listens for connections over iWARP.
struct CmAddress {
  net::IpAddress ip;
  uint16_t port = 0;
  CmToken token = {};  // random: what who connects must say
};

struct VerbsAddress {
  bool infiniband = false;  // link layer: InfiniBand, or Ethernet (RoCE)
  bool needs_grh = false;   // InfiniBand: the port is reached only with a global route
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;  // InfiniBand only
  // 24 bits, 1 to kMostQpsPerRail of them, each another.
  std::vector<uint32_t> qp_numbers;
  uint32_t psn = 0;             // of the first packet that each of them sends, 24 bits
  uint32_t slots = 0;           // of its receive ring: a power of two
  uint32_t slot_payload = 0;    // bytes of payload that a slot takes, a multiple of 64
  uint64_t ring_address = 0;    // of its receive ring, in its address space
  uint32_t ring_key = 0;        // remote key of that ring
  std::vector<GidChoice> gids;  // at most one of each kind; their index does not travel
  std::vector<uint16_t> pkeys;  // at most kMostPkeys, each of another partition, best first
  // Of iWARP, where there are no GIDs, P_Keys and numbers of queue pairs.
  std::optional<CmAddress> iwarp;
};

std::string EncodeAddress(const VerbsAddress& address);

// Errors: InvalidArgument, which names the field.
absl::StatusOr<VerbsAddress> ParseAddress(absl::string_view bytes);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_ADDRESS_H_
