// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message, or read the same way twice into a configuration that can be
// used.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/config_reader.h"
#include "device-plugin/config/selector.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

std::vector<fabric::Hca> SomeHcas() {
  std::vector<fabric::Hca> hcas(4);
  hcas[0].name = "mlx5_0";
  hcas[0].pci_address = "0000:18:00.0";
  hcas[0].vendor = "15b3";
  hcas[0].device = "1021";
  hcas[0].driver = "mlx5_core";
  hcas[0].ports = {{.port = 1, .state = "ACTIVE", .link_layer = "InfiniBand", .rate_gbps = 400}};
  hcas[1] = hcas[0];
  hcas[1].name = "mlx5_1";
  hcas[1].pci_address = "0000:2a:00.0";
  hcas[1].netdev = "eth2";
  hcas[1].ports[0].link_layer = "Ethernet";
  hcas[2].name = "rxe0";
  hcas[3].name = "mlx5_1_dma";
  hcas[3].offered = false;
  return hcas;
}

void Run(absl::string_view text) {
  const absl::StatusOr<AgentConfig> config = ParseAgentConfig(text, "agent.yaml");
  if (!config.ok()) {
    Require(absl::IsInvalidArgument(config.status()));
    Require(absl::StartsWith(config.status().message(), "agent.yaml:"));
    return;
  }
  const absl::StatusOr<AgentConfig> again = ParseAgentConfig(text, "agent.yaml");
  Require(again.ok() && *again == *config);
  Require(!config->resources.empty());

  std::vector<fabric::Hca> hcas = SomeHcas();
  fabric::AssignRails(hcas);
  ApplyRails(config->rails, hcas);
  std::set<int> rails;
  for (const fabric::Hca& hca : hcas) {
    Require(hca.rail <= fabric::kHighestRail);
    Require(!hca.offered || rails.insert(hca.rail).second);
  }

  const std::vector<std::vector<size_t>> shares = ShareOut(*config, hcas);
  Require(shares.size() == config->resources.size());
  std::set<size_t> owned;
  for (const std::vector<size_t>& share : shares) {
    for (const size_t i : share) Require(hcas.at(i).offered && owned.insert(i).second);
  }
  for (const ResourceConfig& resource : config->resources) {
    if (!resource.selectors.empty()) ClosestMiss(resource.selectors, hcas);
  }
}

}  // namespace
}  // namespace railhead::device_plugin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::device_plugin::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
