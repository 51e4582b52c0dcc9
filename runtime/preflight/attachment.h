// SPDX-License-Identifier: Apache-2.0
//
// Finds network attachments of this pod that are on another NIC than its HCAs. An attachment
// (macvlan, ipvlan, SR-IOV) is bound to one NIC; if the pod got the HCA of another one, that HCA's
// GID table does not contain the pod's address, and connections start from an address of the node,
// or of another pod.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_ATTACHMENT_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_ATTACHMENT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "fabric/pod_rails.h"
#include "runtime/net/address.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// Sets `attached_elsewhere` and `has_node_gid` of `facts`. `rails`: all that this container got.
// `own`: the addresses of this network namespace. `root`: the path of "/". Skips a rail whose
// interface is in this namespace (hostNetwork).
void FindAttachments(const std::string& root, const std::vector<fabric::PodRail>& rails,
                     absl::Span<const net::IpAddress> own, absl::Span<RailFacts> facts);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_ATTACHMENT_H_
