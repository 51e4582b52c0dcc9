// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_ROCE_GIDS_H_
#define RAILHEAD_FABRIC_ROCE_GIDS_H_

#include <string>

#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Why the data port of a RoCE adapter can be ACTIVE and yet carry nothing between nodes: its GID
// table holds no entry for RoCE v2. Names the port and what to do. "" when there is such an entry,
// for InfiniBand and iWARP, and where the table cannot be seen.
std::string RoceGidTrouble(const RootFiles& files, const Hca& hca);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_ROCE_GIDS_H_
