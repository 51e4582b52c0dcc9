// SPDX-License-Identifier: Apache-2.0
//
// Choice of the GID of a queue pair. Users of RoCE most often get this wrong, because the right
// index differs per node, pod and NIC. Here it is automatic: both sides examine their tables and
// agree on a common kind.
//
// Pure: no device, no system call.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/net/address.h"

namespace railhead::transport::verbs {

// Kinds of GIDs, best first. Values are sent in addresses: never renumber.
//
// RoCE v2 is routable and gets ECMP entropy from its UDP port, so it precedes v1 in every form.
// IPv4-mapped precedes IPv6 because it follows an address that an administrator configured;
// link-local is last because it does not cross a router.
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

// Returns "10.0.0.1" for an IPv4-mapped GID, IPv6 notation for others.
std::string GidText(const Gid& gid);

// Returns true if `gid` can be of `kind`: not zero, with a matching prefix.
bool GidFitsKind(const Gid& gid, GidKind kind);

// Returns the usable GIDs of `port` in a table as from QueryGidTable (sparse, any order): for each
// kind the one with the lowest index, best kind first. `infiniband` is the port's link layer; kinds
// of the other link layer are excluded.
//
// A RoCE port's table has the addresses of every interface above it, in any network namespace: the
// node's and other pods' (macvlan, VLAN). `own` are the addresses of this namespace. If routable
// ones are in the table, only these are used: packets with another's would have a source that is
// not this pod's. Otherwise the node shares its own: if routable GIDs are among those with an index
// in `node`, only these are used.
std::vector<GidChoice> UsableGids(absl::Span<const ibv_gid_entry> table, uint32_t port,
                                  bool infiniband, absl::Span<const net::IpAddress> own,
                                  const std::set<uint32_t>& node = {});

struct GidPair {
  GidChoice local;
  GidChoice peer;
};

// Returns the best common kind; both sides compute the same pair from the same two lists. Nullopt
// if there is none.
std::optional<GidPair> CommonGids(absl::Span<const GidChoice> local,
                                  absl::Span<const GidChoice> peer);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_GID_H_
