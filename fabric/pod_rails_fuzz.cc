// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message, or read into a value that is written and read as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fabric/pod_rails.h"

namespace railhead::fabric {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<PodRails> read = ParsePodRails(text);
  if (!read.ok()) {
    Require(absl::IsInvalidArgument(read.status()));
    Require(absl::StartsWith(read.status().message(), "rails.json: "));
    return;
  }
  const std::string written = ToJson(*read);
  constexpr size_t kMaxText = size_t{1} << 20;  // indented, a text may be longer than it was
  if (written.size() > kMaxText) return;
  const absl::StatusOr<PodRails> again = ParsePodRails(written);
  Require(again.ok() && *again == *read);
}

}  // namespace
}  // namespace railhead::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::fabric::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
