// SPDX-License-Identifier: Apache-2.0
//
// An InfiniBand subnet as ibnetdiscover prints it.
#ifndef RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads the output of `ibnetdiscover` (infiniband-diags) without options. A host's name and its
// HCA's are those of the node description ("n0 mlx5_0", as rdma-ndd sets it); a description that
// names no host leaves the device without a name. Routers and the switches' own aggregation nodes
// (SHARP) are left out.
//
// InvalidArgument says source, line and field: for lines of another form, ports of no device, a
// port that has two cables, a device that is listed twice, and texts of more than 256 MiB.
absl::StatusOr<Observations> ReadIbnetdiscover(absl::string_view text, absl::string_view source);

// Whether a text is one.
bool IsIbnetdiscover(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_
