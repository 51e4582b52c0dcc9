// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message that names it, or read into a model that is written and read
// back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "fabric/model/model_reader.h"
#include "fabric/model/model_yaml.h"

namespace railhead::fabric {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<FabricModel> model = ParseFabricModel(text, "fabric.yaml");
  if (!model.ok()) {
    Require(absl::IsInvalidArgument(model.status()));
    Require(absl::StartsWith(model.status().message(), "fabric.yaml:"));
    return;
  }
  for (const std::vector<int>& level : DomainsOfNodes(*model)) {
    for (const int domain : level) Require(domain >= 0);
  }
  // Texts that are no UTF-8 become what JSON can say, and do not come back.
  const std::string json =
      ToJson(*model).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (json.find("\xef\xbf\xbd") != std::string::npos) return;
  const absl::StatusOr<FabricModel> again = ParseFabricModel(json, "again");
  Require(again.ok() && *again == *model);
  const absl::StatusOr<FabricModel> from_yaml = ParseFabricModel(ToYaml(*model), "yaml");
  Require(from_yaml.ok() && *from_yaml == *model);
}

}  // namespace
}  // namespace railhead::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::fabric::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
