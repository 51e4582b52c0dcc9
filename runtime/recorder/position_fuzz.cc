// SPDX-License-Identifier: Apache-2.0
//
// Whatever a rank says of where it is can be read in one way or not at all, and told in few words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/recorder/position.h"
#include "runtime/recorder/report.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using railhead::recorder::Seen;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<railhead::recorder::Position> position =
      railhead::recorder::ParsePosition(bytes);
  if (!position.ok()) return 0;
  Require(railhead::recorder::Encode(*position) == bytes);
  Require(size <= railhead::recorder::kPositionLimit);
  const Seen seen = {"rank 0", Seen::How::kAnswered, *position};
  for (const size_t ranks : {size_t{1}, size_t{2}, size_t{5}}) {
    const std::string report = railhead::recorder::Report(std::vector<Seen>(ranks, seen));
    Require(!report.empty() && report.size() <= railhead::recorder::kReportLimit);
  }
  return 0;
}
