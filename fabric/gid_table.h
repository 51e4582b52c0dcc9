// SPDX-License-Identifier: Apache-2.0
//
// The GID table of a port: by which addresses other nodes can reach it, and whose they are.
//
// The kernel adds an entry for each IP address of each interface on a RoCE port, whatever network
// namespace the interface is in, so the table of one port holds the host's addresses and those of
// pods that have a macvlan interface on it or the interface itself.
#ifndef RAILHEAD_FABRIC_GID_TABLE_H_
#define RAILHEAD_FABRIC_GID_TABLE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

enum class AddressKind {
  kUnknown,    // no RoCE port, or its table cannot be read
  kNone,       // no entry for RoCE v2
  kLinkLocal,  // reaches the same network segment only
  kRoutable,
};

// "routable", "linkLocal", "none"; "" where it is unknown.
absl::string_view ToString(AddressKind address);

struct GidEntry {
  int index = 0;
  std::string type;  // "RoCE v2", "IB/RoCE v1"
  std::string gid;   // eight groups of four hex digits
  std::string
      netdev;  // the interface whose address it is, as its namespace calls it; "" if unknown

  bool operator==(const GidEntry&) const = default;
};

// What a GID reaches: kNone for one that is all zeros or no GID at all.
AddressKind KindOfGid(absl::string_view gid);

struct PortAddresses {
  AddressKind host = AddressKind::kUnknown;  // the best of the host's RoCE v2 entries
  AddressKind pod =
      AddressKind::kUnknown;  // the best of all other interfaces'; kUnknown where none is
  std::string gid = "";       // the host's first routable one; "" where there is none
  bool no_table = false;      // it has no place for an entry

  bool operator==(const PortAddresses&) const = default;
};

// Pure. `host_interfaces`: names of the host's own network namespace. An entry that names no
// interface is the host's.
PortAddresses Summarize(const std::vector<GidEntry>& entries,
                        const std::set<std::string>& host_interfaces);

// Of a RoCE port (an Ethernet port of a device whose node type is "1: CA"); all unknown for any
// other. Stops after 32 places that are not in use.
PortAddresses ReadPortAddresses(const RootFiles& files, const std::string& hca, int port);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GID_TABLE_H_
