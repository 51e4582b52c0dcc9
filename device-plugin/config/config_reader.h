// SPDX-License-Identifier: Apache-2.0
//
// Reader of the node agent's configuration file. Used by Agent and `railhead-device-plugin
// discover`.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/config.h"

namespace railhead::device_plugin {

// Reads YAML or JSON (config.schema.json describes it for editors):
//
//   resources:                  # optional; default: one resource rdma/hca with every HCA
//   - name: rdma/hca            # unique
//     selectors:                # optional; see Selector. At most one resource omits it
//     - {vendors: ["15b3"], linkLayers: [InfiniBand], rails: [0, 1]}
//     slots: 4                  # optional, 1 to 128 (default 1)
//     perRail: true             # optional: rdma/hca-0, rdma/hca-1, ... instead of rdma/hca
//     allHcas: true             # optional: one device is all HCAs of the resource
//     deviceIds: pciAddress     # optional, or name (the default); not with slots
//     network: attached         # optional, or host (the default), or moved
//     moveInterfaces: true      # optional; with network: moved
//   rails:                      # optional: overrides rail numbers, which are 0 to 63
//   - {rail: 0, interface: eth2}               # one of interface, pciAddress and name
//   - {rail: 1, pciAddress: "0000:18:00.0"}
//   gpuVendors: ["8086"]        # optional
//   ncclTopology: true          # optional, false by default
//
// IDs and PCI addresses are case-insensitive and become lower case, as in Hca. An empty text is the
// default configuration. Empty lists of resources, selectors or selector entries are rejected,
// because they could mean all or nothing.
//
// InvalidArgument gives place, cause and fix: `agent.yaml:7: resources[0].selectors[1].vendors[0]:
// "15b" is not four hex digits; ...`, where `source` is the name of the text. It also rejects
// unknown fields, duplicate fields, rails and devices, more than 1 MiB or one document, and aliases
// that expand to more than 100000 values.
absl::StatusOr<AgentConfig> ParseAgentConfig(absl::string_view yaml, absl::string_view source);

// Reads a regular file, also through links (a ConfigMap is mounted as links); never blocks on a
// pipe. NotFound, PermissionDenied, ... if it cannot be read; InvalidArgument if it is not a file
// of at most 1 MiB, and as above.
absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_
