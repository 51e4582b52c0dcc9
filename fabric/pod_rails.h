// SPDX-License-Identifier: Apache-2.0
//
// File /run/railhead/rails.json: the rails of one container. The node agent writes it; the runtime
// in the pod reads it instead of guessing.
#ifndef RAILHEAD_FABRIC_POD_RAILS_H_
#define RAILHEAD_FABRIC_POD_RAILS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

struct PodRail {
  int rail = 0;            // position on the node, from 0
  std::string device;      // "mlx5_0"
  int port = 1;            // the port to use, from 1
  std::string link_layer;  // "InfiniBand", "Ethernet", or "" if unknown
  double rate_gbps = 0;    // Gbit/s, one direction; 0 when unknown
  std::string pci_address;
  int numa_node = -1;                     // -1 when unknown
  std::string netdev;                     // "" if none
  std::vector<std::string> char_devices;  // "/dev/infiniband/uverbs0"
  std::vector<std::string> nearest_gpus;  // PCI addresses

  bool operator==(const PodRail&) const = default;
};

struct PodRails {
  std::string node;
  std::vector<PodRail> rails;

  bool operator==(const PodRails&) const = default;
};

// Deterministic: equal values give equal bytes. Replaces invalid UTF-8.
std::string ToJson(const PodRails& pod_rails);

// Parses untrusted text. Rejects more than 1 MiB, another apiVersion or kind, fields of wrong type
// or range, and duplicate rails; the message names the field. Ignores unknown fields; optional ones
// have PodRail's defaults (required: node, and each rail's number, device and port).
absl::StatusOr<PodRails> ParsePodRails(absl::string_view json);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_POD_RAILS_H_
