// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message that names it, or read the same way twice into a request that
// the solver answers for a small fabric or refuses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/model/fabric_model.h"
#include "placement/reasons.h"
#include "placement/request_reader.h"
#include "placement/solver.h"

namespace railhead::placement {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

fabric::FabricModel SmallFabric() {
  fabric::FabricModel model;
  model.name = "small";
  model.levels = {"spine", "leaf"};
  model.rails = 8;
  model.domains = {{{"s0", -1, 0, 2}}, {{"l0", 0, 0, 2}, {"l1", 0, 2, 2}}};
  for (int i = 0; i < 4; ++i) model.nodes.push_back({absl::StrCat("n", i), 8, 8, i, 0, {}, ""});
  model.nodes[1].dead_rails = {2};
  return model;
}

void Run(absl::string_view text) {
  const fabric::FabricModel model = SmallFabric();
  const absl::StatusOr<PlacementRequest> request =
      ParsePlacementRequest(text, "request.yaml", model.levels);
  if (!request.ok()) {
    Require(absl::IsInvalidArgument(request.status()));
    Require(absl::StartsWith(request.status().message(), "request.yaml:"));
    return;
  }
  Require(*ParsePlacementRequest(text, "request.yaml", model.levels) == *request);
  const absl::StatusOr<Placement> placement = Solve(model, *request);
  Require(placement.ok());
  Require(placement->placed == WhyNotPlaced(model, *request)->empty());
}

}  // namespace
}  // namespace railhead::placement

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::placement::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
