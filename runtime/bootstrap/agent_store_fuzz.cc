// SPDX-License-Identifier: Apache-2.0
//
// Any bytes that a process at MASTER_PORT answers end in a value, in a wait for more, or in an
// error. An answer that is complete was incomplete before its last byte, and nothing that follows
// it is taken for a part of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/agent_store_wire.h"
#include "runtime/testing/fuzz_input.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::Require;

template <class Value>
void RunParser(absl::StatusOr<std::optional<Value>> (*parse)(absl::string_view),
               absl::string_view bytes) {
  bool complete = false;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const absl::StatusOr<std::optional<Value>> value = parse(bytes.substr(0, size));
    if (!value.ok()) {
      Require(absl::IsUnimplemented(value.status()));
      Require(value.status().message().size() < 1000);
      return;  // the connection is closed
    }
    Require(!complete);
    complete = value->has_value();
  }
}

void RunValue(absl::string_view bytes) {
  const absl::StatusOr<std::optional<std::string>> value = ParseStoreValue(bytes);
  if (value.ok() && value->has_value()) {
    Require((*value)->size() <= kStoreValueLimit && bytes.size() == 8 + (*value)->size());
  }
  const absl::StatusOr<StoredAddress> stored = ParseStoredAddress(bytes);
  if (!stored.ok()) return;
  Require(stored->port != 0);
  const absl::StatusOr<StoredAddress> again = ParseStoredAddress(EncodeStoredAddress(*stored));
  // The interface of a link-local address may have no name here.
  Require(!again.ok() || again->port == stored->port);
}

}  // namespace
}  // namespace railhead::bootstrap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongest = 2048;  // more is never read at once
  const absl::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kLongest));
  railhead::bootstrap::RunParser(railhead::bootstrap::ParseStoreCheck, bytes);
  railhead::bootstrap::RunParser(railhead::bootstrap::ParseStoreWait, bytes);
  railhead::bootstrap::RunParser(railhead::bootstrap::ParseStoreValue, bytes);
  railhead::bootstrap::RunValue(bytes);
  return 0;
}
