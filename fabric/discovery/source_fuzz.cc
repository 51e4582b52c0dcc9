// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message that names it, or read into observations whose links join
// devices that it told of, and whose fabric is a model that can be written and read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/source.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_reader.h"
#include "fabric/model/model_yaml.h"

namespace railhead::fabric {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<Observations> seen = ReadSource(text, "source");
  if (!seen.ok()) {
    Require(absl::IsInvalidArgument(seen.status()));
    Require(absl::StartsWith(seen.status().message(), "source:"));
    return;
  }
  std::set<std::string> devices;
  for (const SeenDevice& device : seen->devices) devices.insert(device.id);
  for (const SeenLink& link : seen->links) {
    Require(devices.count(link.near.device) == 1 && devices.count(link.far.device) == 1);
    Require(!link.near.port.empty() && !link.far.port.empty() && link.gbps >= 0);
  }
  for (const SeenNode& node : seen->nodes) Require(!node.name.empty());
  const absl::StatusOr<DiscoveredFabric> found = FuseObservations(*seen, "fuzz");
  if (!found.ok()) {
    Require(absl::IsFailedPrecondition(found.status()));
    return;
  }
  Require(found->wires.size() == found->model.nodes.size());
  for (const Finding& finding : found->findings) {
    Require(!finding.object.empty() && !finding.observed.empty() && !finding.fix.empty());
  }
  const absl::StatusOr<FabricModel> model = ParseFabricModel(ToYaml(found->model), "found");
  Require(model.ok() && *model == found->model);
}

}  // namespace
}  // namespace railhead::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::fabric::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
