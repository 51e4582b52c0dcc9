// SPDX-License-Identifier: Apache-2.0
//
// Reader of any source; detects the format from the content.
#ifndef RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_
#define RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/kubernetes_reader.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads LLDP neighbours (lldp_reader.h), an InfiniBand subnet (ibnetdiscover_reader.h), or
// Kubernetes nodes and pods with labels and facts (kubernetes_reader.h). InvalidArgument gives
// `source`, line and field.
absl::StatusOr<Observations> ReadSource(absl::string_view text, absl::string_view source,
                                        const IsHca& is_hca = IsOfRdma);

// Appends the observations of `more` to `all`.
void Append(Observations more, Observations& all);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_
