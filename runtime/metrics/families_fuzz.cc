// SPDX-License-Identifier: Apache-2.0
//
// Whatever another process of the pod says its metrics are: they are understood as they were meant,
// or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "runtime/metrics/families.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace metrics = railhead::metrics;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto families = metrics::ParseFamilies(bytes);
  if (!families.ok()) return 0;
  if (metrics::Encode(*families) != bytes) std::abort();
  metrics::Families twice = metrics::Merge({*families, *families});
  const metrics::Families once = metrics::Merge({*std::move(families)});
  if (metrics::Encode(twice) != metrics::Encode(once)) std::abort();
  return 0;
}
