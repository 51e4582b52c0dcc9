// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/cpu_limit.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace railhead::comm {
namespace {

// Both are microseconds. Without a limit the quota is "max", or -1 in version 1.
bool ReadQuota(const std::string& folder, CpuLimit& limit) {
  int64_t quota = 0;
  int64_t period = 0;
  std::ifstream both(absl::StrCat(folder, "cpu.max"));
  if (!(both >> quota >> period)) {
    std::ifstream first(absl::StrCat(folder, "cpu.cfs_quota_us"));
    std::ifstream second(absl::StrCat(folder, "cpu.cfs_period_us"));
    if (!(first >> quota) || !(second >> period)) return false;
  }
  constexpr int64_t kLongest = 1'000'000'000'000;
  if (quota <= 0 || quota > kLongest || period <= 0) return false;
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return false;
  limit.group = about.st_ino;
  limit.millicores = static_cast<uint64_t>(quota * 1000 / period);
  return true;
}

}  // namespace

CpuLimit ReadCpuLimit(const std::string& root) {
  const std::string base = absl::StrCat(absl::StripSuffix(root, "/"), "/sys/fs/cgroup/");
  CpuLimit limit;
  if (!ReadQuota(base, limit)) ReadQuota(absl::StrCat(base, "cpu/"), limit);
  return limit;
}

}  // namespace railhead::comm
