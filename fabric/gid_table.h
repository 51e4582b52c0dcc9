// SPDX-License-Identifier: Apache-2.0
//
// GID table of a port: the addresses by which other nodes reach it, and their owners.
//
// The kernel adds an entry for each IP address of each interface on a RoCE port, in any network
// namespace. So a port's table contains the host's addresses and those of pods that have a macvlan
// interface on it, or the interface itself.
#ifndef RAILHEAD_FABRIC_GID_TABLE_H_
#define RAILHEAD_FABRIC_GID_TABLE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

enum class AddressKind {
  kUnknown,    // not a RoCE port, or table unreadable
  kNone,       // no RoCE v2 entry
  kLinkLocal,  // reaches the same segment only
  kRoutable,
};

// Returns "routable", "linkLocal" or "none"; "" if unknown.
absl::string_view ToString(AddressKind address);

struct GidEntry {
  int index = 0;
  std::string type;  // "RoCE v2", "IB/RoCE v1"
  std::string gid;   // eight groups of four hex digits
  std::string
      netdev;  // the interface whose address it is, as its namespace calls it; "" if unknown

  bool operator==(const GidEntry&) const = default;
};

// Returns the reach of a GID; kNone for all zeros and for invalid text.
AddressKind KindOfGid(absl::string_view gid);

struct PortAddresses {
  AddressKind host = AddressKind::kUnknown;  // best of the host's RoCE v2 entries
  AddressKind pod =
      AddressKind::kUnknown;  // the best of all other interfaces'; kUnknown where none is
  std::string gid = "";       // the host's first routable GID; "" if none
  bool no_table = false;      // the table has size zero

  bool operator==(const PortAddresses&) const = default;
};

// Pure. `host_interfaces`: names in the host's network namespace. An entry without an interface is
// the host's.
PortAddresses Summarize(const std::vector<GidEntry>& entries,
                        const std::set<std::string>& host_interfaces);

// Reads the table of a RoCE port (an Ethernet port of a device of node type "1: CA"); all unknown
// for others. Stops after 32 unused entries.
PortAddresses ReadPortAddresses(const RootFiles& files, const std::string& hca, int port);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GID_TABLE_H_
