// SPDX-License-Identifier: Apache-2.0
//
// What a rank knows of its rails before a job relies on them, and how it tells the others. Values
// only: local.h reads them, findings.h judges them.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_FACTS_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_FACTS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/rails/peer.h"

namespace railhead::preflight {

// What can be asked of a port only once it is open.
struct PortFacts {
  int mtu = 0;           // bytes, in force
  int largest_mtu = 0;   // bytes, that the port could have; 0 where that has no meaning
  std::string gid_kind;  // of the one that is preferred: "RoCE v2 over IPv4"; "": there is none
  uint32_t gid_index = 0;
  std::string gid_address;
  bool roce_v1 = false;      // of the GID
  uint64_t registers = 0;    // bytes of memory that a link to one peer would like to register
  uint64_t least_bytes = 0;  // with less it does not work

  bool operator==(const PortFacts&) const = default;
};

// By how much a counter of the rail's port has grown while all was tried.
struct Growth {
  std::string counter;
  uint64_t by = 0;

  bool operator==(const Growth&) const = default;
};

// One rail. What cannot be read, or does not exist, is empty.
struct RailFacts {
  rails::RailName name;
  std::string trouble;            // why it cannot be used; "" if it can
  std::string state;              // "ACTIVE", "DOWN"; of a network interface "up"
  std::string physical;           // "LinkUp"
  std::string link_layer;         // "InfiniBand" or "Ethernet"
  std::string rate;               // "400 Gb/sec (4X NDR)"; of a network interface "25000 Mb/s"
  std::optional<PortFacts> port;  // nothing while it is not open
  std::string device_node;        // "/dev/infiniband/uverbs0"
  std::string device_node_trouble;
  std::string ecn;  // "on for priorities 3", "off"
  bool counted = false;
  std::vector<Growth> growth;

  bool operator==(const RailFacts& other) const;
};

// What became of the round trips to one peer over one rail.
struct PingFacts {
  int peer = 0;
  int rail = 0;              // its number
  uint32_t nanoseconds = 0;  // the median
  std::string trouble;       // why there is none; "" if there is

  bool operator==(const PingFacts&) const = default;
};

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

struct RankFacts {
  std::string name;               // "rank 2 (pod a on node b)"
  uint64_t memlock = kUnlimited;  // bytes that this process may pin
  uint64_t registers = 0;         // bytes that all links to all neighbours would like to register
  uint64_t least_bytes = 0;       // with less some would not work
  std::vector<RailFacts> rails;
  std::vector<PingFacts> pings;  // to neighbours with a higher number

  bool operator==(const RankFacts&) const = default;
};

// For the exchange between ranks. The bytes are not trusted: Parse returns Internal for what Encode
// does not write, and what it returns Encode writes as the same bytes.
std::string Encode(const RankFacts& facts);
absl::StatusOr<RankFacts> ParseFacts(absl::string_view bytes);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_FACTS_H_
