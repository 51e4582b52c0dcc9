// SPDX-License-Identifier: Apache-2.0
//
// The file /run/railhead/rails.json: the rails that one container was given. The node agent writes
// it, the runtime in the pod reads it, so that nothing in the pod has to guess.
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
  std::string link_layer;  // "InfiniBand", "Ethernet", or "" when unknown
  double rate_gbps = 0;    // Gbit/s, one direction; 0 when unknown
  std::string pci_address;
  int numa_node = -1;                     // -1 when unknown
  std::string netdev;                     // "" when it has none
  std::vector<std::string> char_devices;  // "/dev/infiniband/uverbs0"
  std::vector<std::string> nearest_gpus;  // PCI addresses

  bool operator==(const PodRail&) const = default;
};

struct PodRails {
  std::string node;
  std::vector<PodRail> rails;

  bool operator==(const PodRails&) const = default;
};

// The same value always gives the same bytes. Bytes that are not UTF-8 are replaced.
std::string ToJson(const PodRails& pod_rails);

// Reads the file's text, which may come from anywhere. Refuses texts over 1 MiB, another apiVersion
// or kind, fields of the wrong type or range, and a rail number that appears twice; the message
// names the field. Fields it does not know are ignored; optional ones take PodRail's defaults
// (required: node, and of each rail its number, device and port).
absl::StatusOr<PodRails> ParsePodRails(absl::string_view json);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_POD_RAILS_H_
