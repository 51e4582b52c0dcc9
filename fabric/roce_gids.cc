// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce_gids.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

std::string RoceGidTrouble(const RootFiles& files, const Hca& hca) {
  constexpr char kNoAddress[] = "0000:0000:0000:0000:0000:0000:0000:0000";
  const HcaPort* port = DataPort(hca);
  if (port == nullptr || port->link_layer != "Ethernet") return "";
  const std::string device = absl::StrCat("/sys/class/infiniband/", hca.name);
  // "1: CA"; an iWARP adapter is "4: RNIC" and has no GIDs in this sense.
  if (!absl::StartsWith(files.ReadAttribute(device + "/node_type").value_or(""), "1:")) return "";
  const std::string folder = absl::StrCat(device, "/ports/", port->port);
  const absl::StatusOr<std::vector<std::string>> entries = files.List(folder + "/gid_attrs/types");
  if (!entries.ok()) return "";  // it cannot be seen
  if (entries->empty()) {
    return absl::StrCat("port ", port->port,
                        " has no GID table, as a physical function in switchdev mode; its RoCE is "
                        "in its subfunctions and virtual functions (devlink dev eswitch show)");
  }
  for (const std::string& entry : *entries) {
    // The type of an entry that is not in use cannot be read.
    const std::string type =
        files.ReadAttribute(absl::StrCat(folder, "/gid_attrs/types/", entry)).value_or("");
    if (type != "RoCE v2") continue;
    const std::string gid =
        files.ReadAttribute(absl::StrCat(folder, "/gids/", entry)).value_or(kNoAddress);
    if (gid != kNoAddress) return "";
  }
  return absl::StrCat(
      "port ", port->port, " has no RoCE v2 entry in its GID table; give its interface ",
      hca.netdev.empty() ? "" : hca.netdev + " ", "an IP address, and check that it is up");
}

}  // namespace railhead::fabric
