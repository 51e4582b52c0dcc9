// SPDX-License-Identifier: Apache-2.0
//
// Reads the GID table of a port from sysfs.
#ifndef RAILHEAD_FABRIC_GID_TABLE_READER_H_
#define RAILHEAD_FABRIC_GID_TABLE_READER_H_

#include <string>
#include <vector>

#include "fabric/gid_table.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Returns the used entries of a RoCE port (an Ethernet port of a device of node type "1: CA"); none
// of others. Stops after 32 unused entries.
std::vector<GidEntry> ReadGidTable(const RootFiles& files, const std::string& hca, int port);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GID_TABLE_READER_H_
