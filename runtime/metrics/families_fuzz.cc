// SPDX-License-Identifier: Apache-2.0
//
// Whatever another process of the pod says its metrics are: they are understood as they were meant,
// or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "runtime/metrics/families.h"

namespace {

size_t CountSeries(const railhead::metrics::Families& families) {
  size_t count = 0;
  for (const auto& family : families) count += family.metric.size();
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace metrics = railhead::metrics;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto families = metrics::ParseFamilies(bytes);
  if (!families.ok()) return 0;
  if (metrics::Encode(*families) != bytes) std::abort();
  metrics::Families twice = metrics::Merge({{"1", *families}, {"1", *families}}).families;
  const metrics::Families once = metrics::Merge({{"1", *std::move(families)}}).families;
  if (CountSeries(once) == 0) return 0;
  // Nothing is lost: all that both processes have is told apart, and counted.
  twice.pop_back();
  if (CountSeries(twice) != 2 * CountSeries(once)) std::abort();
  for (const auto& family : twice) {
    for (const auto& series : family.metric) {
      if (series.label[2].name != "process") std::abort();
    }
  }
  return 0;
}
