// SPDX-License-Identifier: Apache-2.0
//
// Which GID a queue pair uses: the one choice that users of RoCE get wrong most often, because the
// index of the right entry differs per node, per pod and per NIC. Nobody sets it here; both sides
// look at their tables and agree on a kind that both have.
//
// Pure: no device, no system call. In a pod the netdev behind a GID may live in another network
// namespace, so nothing here looks at interfaces, only at addresses.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/net/address.h"

namespace railhead::transport::verbs {

// What a GID is good for, best first. Values travel in addresses: never renumber.
//
// RoCE v2 is routable and gets ECMP entropy from its UDP port, so it comes before v1 in every form.
// An IPv4-mapped GID comes before IPv6 because it follows the address an administrator configured,
// and link-local is last because it does not cross a router.
enum class GidKind : uint8_t {
  kInfiniband = 1,
  kRoceV2Ipv4 = 2,
  kRoceV2Ipv6 = 3,
  kRoceV2LinkLocal = 4,
  kRoceV1Ipv4 = 5,
  kRoceV1Ipv6 = 6,
  kRoceV1LinkLocal = 7,
};
inline constexpr int kGidKinds = 7;

using Gid = std::array<uint8_t, 16>;

struct GidChoice {
  GidKind kind = GidKind::kInfiniband;
  uint32_t index = 0;  // in the port's table; meaningless for a peer's GID
  Gid gid = {};
};

absl::string_view GidKindName(GidKind kind);

// As people write it: "10.0.0.1" for an IPv4-mapped GID, IPv6 notation otherwise.
std::string GidText(const Gid& gid);

// Whether `gid` can be of `kind`: not zero, and its prefix fits.
bool GidFitsKind(const Gid& gid, GidKind kind);

// The usable GIDs of `port` in a table as QueryGidTable returns it (sparse, any order): for each
// kind the one with the lowest index, best kind first. `infiniband` is the port's link layer; kinds
// of the other link layer are never returned.
//
// A RoCE port's table has entries for the addresses of every interface above it, whoever's network
// namespace that is in: the node's, and those of other pods (macvlan, VLAN). `own` are the
// addresses of this namespace. If it has routable ones in the table, only these count: with
// another's, packets would leave under a name that is not this pod's. If it has none, the node
// shares its own.
std::vector<GidChoice> UsableGids(absl::Span<const ibv_gid_entry> table, uint32_t port,
                                  bool infiniband, absl::Span<const net::IpAddress> own);

struct GidPair {
  GidChoice local;
  GidChoice peer;
};

// The best kind that both have: both sides compute the same pair from the same two lists. Nothing
// when they have no kind in common.
std::optional<GidPair> CommonGids(absl::Span<const GidChoice> local,
                                  absl::Span<const GidChoice> peer);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_
