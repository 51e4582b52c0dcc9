// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused with a message, or read into a record that is written and read as the same,
// and with which everything else can be done.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/grant/cdi_spec.h"

namespace railhead::device_plugin {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<AllocationRecord> read = ParseAllocationRecord(text);
  if (!read.ok()) {
    Require(absl::IsInvalidArgument(read.status()));
    Require(absl::StartsWith(read.status().message(), "allocation: "));
    return;
  }
  Require(IsCdiName(read->name));
  const std::string written = ToJson(*read);
  constexpr size_t kMaxText = size_t{1} << 20;  // indented, a text may be longer than it was
  if (written.size() > kMaxText) return;
  const absl::StatusOr<AllocationRecord> again = ParseAllocationRecord(written);
  Require(again.ok() && *again == *read);

  const std::vector<ContainerDevices> listed = {
      {"ns", "pod", "main", {{read->resource, read->ids}}},
      {"ns", "pod", "other", {{read->resource, {read->ids.front()}}}},
  };
  const std::vector<ContainerDevices> bound = AsBound({*read}, listed);
  Require(bound.size() == listed.size());
  Require(bound[0].devices.at(read->resource).size() == read->ids.size());
  BoundElsewhere({*read}, listed, read->resource);
  Require(!IsGone({*read}, 0, HeldByResource(listed)));
  Require(IsGone({*read}, 0, {}));
}

}  // namespace
}  // namespace railhead::device_plugin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::device_plugin::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
