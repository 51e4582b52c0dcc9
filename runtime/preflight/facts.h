// SPDX-License-Identifier: Apache-2.0
//
// Facts of a rank's rails before a job relies on them, and their encoding for other ranks. Plain
// values: local.h reads them, findings.h evaluates them.
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

// Facts of an open port.
struct PortFacts {
  int mtu = 0;           // in use, in bytes
  int largest_mtu = 0;   // maximum of the port, in bytes; 0 if not applicable
  std::string gid_kind;  // of the preferred GID: "RoCE v2 over IPv4"; "": there is none
  uint32_t gid_index = 0;
  std::string gid_address;
  bool roce_v1 = false;      // of the GID
  uint64_t registers = 0;    // preferred bytes of memory that a link to one peer registers
  uint64_t least_bytes = 0;  // below this it does not work

  bool operator==(const PortFacts&) const = default;
};

// Increase of a port counter during the check.
struct Growth {
  std::string counter;
  uint64_t by = 0;

  bool operator==(const Growth&) const = default;
};

// One rail. Fields that cannot be read, or do not apply, are empty.
struct RailFacts {
  rails::RailName name;
  std::string trouble;            // why it cannot be used; "" if it can
  std::string state;              // "ACTIVE", "DOWN"; of a network interface "up"
  std::string physical;           // "LinkUp"
  std::string link_layer;         // "InfiniBand" or "Ethernet"
  std::string rate;               // "400 Gb/sec (4X NDR)"; of a network interface "25000 Mb/s"
  std::optional<PortFacts> port;  // nullopt while it is not open
  std::string device_node;        // "/dev/infiniband/uverbs0"
  std::string device_node_trouble;
  std::string ecn;  // "on for priorities 3", "off"
  // Set if no GID of a RoCE rail is this pod's, but another HCA, which the pod did not get, has
  // one: "192.168.64.7 is an address of mlx5_1 (0000:c1:00.0)".
  std::string attached_elsewhere;
  // For a TCP rail: by which other interface bytes leave, and why; "" if they do not.
  std::string leaves_elsewhere;
  bool has_node_gid = false;  // there is a routable GID of the node, which connections start from
  bool counted = false;
  std::vector<Growth> growth;

  bool operator==(const RailFacts& other) const;
};

// Result of round trips to one peer over one rail.
struct PingFacts {
  int peer = 0;
  int rail = 0;                    // its number
  uint32_t nanoseconds = 0;        // the median
  std::string trouble;             // why there is no result; "" if there is
  uint32_t large_bytes = 0;        // size of the frames that a job sends
  std::string large_trouble = "";  // why these do not pass, although small ones do; "" if they do

  bool operator==(const PingFacts&) const = default;
};

// What NCCL needs for SHARP, as far as it can be looked up (sharp.h). Empty: not found.
struct SharpFacts {
  bool wanted = false;       // NCCL_COLLNET_ENABLE is 1
  std::string name;          // of NCCL's network plugin: "libnccl-net.so"
  std::string plugin;        // its path
  bool has_collnet = false;  // of the plugin
  std::string library;       // path of libsharp
  std::string hello;         // path of sharp_hello, which sends a request to sharp_am

  bool operator==(const SharpFacts&) const = default;
};

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

struct RankFacts {
  std::string name;               // "rank 2 (pod a on node b)"
  uint64_t memlock = kUnlimited;  // bytes that this process may pin
  uint64_t registers = 0;         // preferred bytes that all links to all peers register
  uint64_t least_bytes = 0;       // below this some do not work
  std::vector<RailFacts> rails;
  std::vector<PingFacts> pings;  // to peers with a higher number
  SharpFacts sharp = {};

  bool operator==(const RankFacts&) const = default;
};

// Encoding for the exchange between ranks. ParseFacts trusts nothing: it returns Internal for bytes
// that Encode does not write, and its results encode to the same bytes.
std::string Encode(const RankFacts& facts);
absl::StatusOr<RankFacts> ParseFacts(absl::string_view bytes);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_FACTS_H_
