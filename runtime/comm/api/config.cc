// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace railhead::comm {
namespace {

// The struct has no padding, also none at its end: in older programs a later field would overlap
// padding of undefined content.
static_assert(sizeof(rhConfig_t) ==
              sizeof(size_t) + 2 * sizeof(unsigned int) + 4 * sizeof(int) + 6 * sizeof(char*));

constexpr size_t kSmallest = offsetof(rhConfig_t, commName);
// Larger than any future version.
constexpr size_t kLargest = sizeof(rhConfig_t) + 4096;

std::string Version(unsigned int code) {
  return absl::StrCat(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

}  // namespace

absl::StatusOr<Config> ReadConfig(const rhConfig_t* config) {
  Config result;
  if (config == nullptr) return result;
  const size_t size = config->size;
  if (config->magic != RH_CONFIG_MAGIC || size < kSmallest || size > kLargest ||
      size % alignof(rhConfig_t) != 0) {
    return absl::InvalidArgumentError(
        "config is not initialized: write rhConfig_t config = RH_CONFIG_INITIALIZER");
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(config);
  const std::byte* const end = bytes + size;
  const std::byte* const unknown =
      std::find_if(bytes + std::min(size, sizeof *config), end,
                   [](std::byte byte) { return byte != std::byte{0}; });
  if (unknown != end) {
    return absl::InvalidArgumentError(absl::StrCat(
        "config sets a field at byte ", unknown - bytes, " of rhConfig_t, of which this library (",
        Version(RH_VERSION_CODE), ") knows ", sizeof *config, " and the program's header (",
        Version(config->version), ") ", size,
        ": leave the field as the initializer made it, or use that version of the library"));
  }
  rhConfig_t known = RH_CONFIG_INITIALIZER;
  std::memcpy(&known, config, std::min(size, sizeof known));

  if (known.blocking != RH_CONFIG_UNDEF_INT) {
    if (known.blocking != 0 && known.blocking != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("blocking='", known.blocking, "' is not allowed: set it to 0 or 1"));
    }
    result.blocking = known.blocking == 1;
  }
  const std::array<std::pair<const char*, int>, 3> numbers = {
      {{"timeoutSeconds", known.timeoutSeconds},
       {"startTimeoutSeconds", known.startTimeoutSeconds},
       {"metrics", known.metrics}}};
  for (const auto& [name, value] : numbers) {
    if (value != RH_CONFIG_UNDEF_INT) result.fields[name] = absl::StrCat(value);
  }
  const std::array<std::pair<const char*, const char*>, 6> texts = {
      {{"commName", known.commName},
       {"transport", known.transport},
       {"fallback", known.fallback},
       {"rails", known.rails},
       {"socketIfname", known.socketIfname},
       {"secretFile", known.secretFile}}};
  for (const auto& [name, value] : texts) {
    if (value != nullptr) result.fields[name] = value;
  }
  return result;
}

}  // namespace railhead::comm
