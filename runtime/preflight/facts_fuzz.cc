// SPDX-License-Identifier: Apache-2.0
//
// Whatever a rank says of its rails can be read in one way or not at all, and judged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/preflight/facts.h"
#include "runtime/preflight/findings.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using railhead::preflight::RankFacts;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<RankFacts> facts = railhead::preflight::ParseFacts(bytes);
  if (!facts.ok()) return 0;
  Require(railhead::preflight::Encode(*facts) == bytes);
  for (const size_t ranks : {size_t{1}, size_t{3}}) {
    const std::vector<RankFacts> all(ranks, *facts);
    Require(!railhead::preflight::FindAll({"verbs", ""}, all).empty());
    railhead::preflight::WarningsOf(*facts, railhead::preflight::UsualOf(all));
  }
  return 0;
}
