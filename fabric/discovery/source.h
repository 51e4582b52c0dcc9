// SPDX-License-Identifier: Apache-2.0
//
// A text of any source, told apart by what stands in it.
#ifndef RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_
#define RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Reads LLDP neighbours (lldp_reader.h), an InfiniBand subnet (ibnetdiscover_reader.h), or
// Kubernetes nodes and pods with their labels and facts (kubernetes_reader.h). InvalidArgument says
// `source`, line and field.
absl::StatusOr<Observations> ReadSource(absl::string_view text, absl::string_view source);

// Puts what `more` says behind the rest.
void Append(Observations more, Observations& all);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_SOURCE_H_
