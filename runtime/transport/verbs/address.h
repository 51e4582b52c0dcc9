// SPDX-License-Identifier: Apache-2.0
//
// Connection information that a side of a verbs link sends to its peer, and its encoding.
// ParseAddress checks every field: the bytes are untrusted.
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

// Listening address of a side for iWARP connections.
struct CmAddress {
  net::IpAddress ip;
  uint16_t port = 0;
  CmToken token = {};  // random: callers must send it
};

struct VerbsAddress {
  bool infiniband = false;  // link layer: InfiniBand, else Ethernet (RoCE)
  bool needs_grh = false;   // InfiniBand: the port needs a global route
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;  // InfiniBand only
  // 24 bits each, unique, 1 to kMostQpsPerRail.
  std::vector<uint32_t> qp_numbers;
  uint32_t psn = 0;             // of each queue pair's first packet, 24 bits
  uint32_t slots = 0;           // of its receive ring: a power of two
  uint32_t slot_payload = 0;    // payload bytes of a slot, a multiple of 64
  uint64_t ring_address = 0;    // of its receive ring, in its address space
  uint32_t ring_key = 0;        // remote key of that ring
  std::vector<GidChoice> gids;  // at most one per kind; the index is not sent
  std::vector<uint16_t> pkeys;  // at most kMostPkeys, one per partition, best first
  // iWARP only, which has no GIDs, P_Keys or queue pair numbers.
  std::optional<CmAddress> iwarp;
};

std::string EncodeAddress(const VerbsAddress& address);

// InvalidArgument names the field.
absl::StatusOr<VerbsAddress> ParseAddress(absl::string_view bytes);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_ADDRESS_H_
