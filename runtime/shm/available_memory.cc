// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/available_memory.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace railhead::shm {
namespace {

// The number after `key`, or the first word for an empty key; nothing when it is not there.
std::optional<uint64_t> ReadNumber(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (key.empty()) return file >> number ? std::optional(number) : std::nullopt;
  while (file >> word) {
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

// One version's files, in the control group's folder.
struct Files {
  const char* limit;
  const char* used;
  const char* stat;
  std::initializer_list<const char*> reclaimable;  // in `stat`, in bytes
};

std::optional<uint64_t> AvailableInGroup(const std::string& folder, const Files& files) {
  const std::optional<uint64_t> limit = ReadNumber(absl::StrCat(folder, files.limit), "");
  const std::optional<uint64_t> used = ReadNumber(absl::StrCat(folder, files.used), "");
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  uint64_t reclaimable = 0;
  for (const char* key : files.reclaimable) {
    reclaimable += ReadNumber(absl::StrCat(folder, files.stat), key).value_or(0);
  }
  const uint64_t held = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, held);
}

}  // namespace

uint64_t AvailableMemory(const std::string& root) {
  const absl::string_view base = absl::StripSuffix(root, "/");
  const std::optional<uint64_t> machine =
      ReadNumber(absl::StrCat(base, "/proc/meminfo"), "MemAvailable:");
  uint64_t available = machine.has_value() ? *machine << 10U : std::numeric_limits<uint64_t>::max();
  const std::optional<uint64_t> version_2 =
      AvailableInGroup(absl::StrCat(base, "/sys/fs/cgroup/"),
                       {"memory.max",
                        "memory.current",
                        "memory.stat",
                        {"inactive_file", "active_file", "slab_reclaimable"}});
  // Version 1 names its counts with those of groups below "total_", and has none of slabs.
  const std::optional<uint64_t> version_1 = AvailableInGroup(
      absl::StrCat(base, "/sys/fs/cgroup/memory/"), {"memory.limit_in_bytes",
                                                     "memory.usage_in_bytes",
                                                     "memory.stat",
                                                     {"total_inactive_file", "total_active_file"}});
  for (const std::optional<uint64_t>& group : {version_2, version_1}) {
    available = std::min(available, group.value_or(available));
  }
  return available;
}

}  // namespace railhead::shm
