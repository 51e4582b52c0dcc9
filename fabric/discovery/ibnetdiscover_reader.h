// SPDX-License-Identifier: Apache-2.0
//
// Reader of ibnetdiscover's output: an InfiniBand subnet.
#ifndef RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads the output of `ibnetdiscover` (infiniband-diags) without options. Host and HCA names come
// from the node description ("n0 mlx5_0", as set by rdma-ndd); other descriptions leave the device
// without a name. Routers and the switches' aggregation nodes (SHARP) are ignored.
//
// InvalidArgument gives source, line and field: for lines of another form, ports without a device,
// ports with two cables, duplicate devices, and more than 256 MiB.
absl::StatusOr<Observations> ReadIbnetdiscover(absl::string_view text, absl::string_view source);

// Returns true if a text is such output.
bool IsIbnetdiscover(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_READER_H_
