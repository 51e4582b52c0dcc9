// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/stores.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace railhead::shm {
namespace {

// Default if the kernel does not report the size.
constexpr size_t kUsualCache = size_t{16} << 20U;

// The largest cache that this machine's first core sees. (sysconf's answer is the sum of all cores'
// caches on some machines and 0 on others.)
size_t LastCache() {
  size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/size"));
    std::string text;  // "32768K"
    size_t kibibytes = 0;
    if (!(file >> text)) continue;
    absl::string_view number = text;
    if (absl::ConsumeSuffix(&number, "K") && absl::SimpleAtoi(number, &kibibytes)) {
      largest = std::max(largest, kibibytes << 10U);
    }
  }
  return largest > 0 ? largest : kUsualCache;
}

}  // namespace

reduce::Stores StoresFor(size_t bytes) {
  static const size_t cache = LastCache();
  return bytes > cache / 4 * 3 ? reduce::Stores::kStreaming : reduce::Stores::kNormal;
}

}  // namespace railhead::shm
