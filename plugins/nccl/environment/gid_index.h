// SPDX-License-Identifier: Apache-2.0
//
// Choice of NCCL_IB_GID_INDEX. Pure.
//
// NCCL uses one index for all its devices, or else looks for the first IPv4 entry of each device's
// table. That is right unless the table begins with addresses of other network namespaces: those of
// the node and of other pods (macvlan).
#ifndef RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_GID_INDEX_H_
#define RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_GID_INDEX_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "fabric/gid_table.h"
#include "runtime/net/address.h"

namespace railhead::nccl {

// Returns the index at which each of the tables (of all Ethernet rails) has one of the addresses
// `own` of this network namespace, for RoCE v2: IPv4 before IPv6, as the runtime chooses
// (transport/verbs/gid.h). Nullopt if a table has none, or the indices or kinds differ, and without
// tables: NCCL then chooses by itself.
std::optional<int> ChooseGidIndex(absl::Span<const std::vector<fabric::GidEntry>> tables,
                                  absl::Span<const net::IpAddress> own);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_ENVIRONMENT_GID_INDEX_H_
