// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message that names it, or read into a decision that is written and
// read back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "placement/decision.h"

namespace railhead::placement {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<Decision> decision = ParseDecision(text, "decision.json");
  if (!decision.ok()) {
    Require(absl::IsInvalidArgument(decision.status()));
    Require(absl::StartsWith(decision.status().message(), "decision.json:"));
    return;
  }
  Require(Difference(*decision, decision->nodes).empty());
  const std::string json = ToJson(*decision);
  // Bytes that are no UTF-8 become what JSON can say, and do not come back.
  if (json.find("\xef\xbf\xbd") != std::string::npos) return;
  const absl::StatusOr<Decision> again = ParseDecision(json, "again");
  Require(again.ok() && *again == *decision);
}

}  // namespace
}  // namespace railhead::placement

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::placement::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
