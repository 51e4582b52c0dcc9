// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/spread.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace railhead::shm {
namespace {

// Another rank may have left the core where it was last seen, unnoticed while it computes: a
// useless move takes a hundredth of the time at most.
constexpr int64_t kBetweenMoves = 4'000'000;

// Returns true if this thread has fewer cores than its container (because of taskset, numactl).
bool IsBound(const cpu_set_t& allowed) {
  for (const char* path :
       {"/sys/fs/cgroup/cpuset.cpus.effective", "/sys/fs/cgroup/cpuset/cpuset.effective_cpus",
        "/sys/devices/system/cpu/online"}) {
    std::ifstream file(path);
    std::string list;
    if (!std::getline(file, list)) continue;
    const size_t cores = CountCores(list);
    if (cores > 0) return static_cast<size_t>(CPU_COUNT(&allowed)) != cores;
  }
  return true;
}

}  // namespace

size_t CountCores(absl::string_view list) {
  size_t count = 0;
  for (const absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(list), ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    uint32_t first = 0;
    uint32_t last = 0;
    if (!absl::SimpleAtoi(ends.first, &first) ||
        !absl::SimpleAtoi(absl::StrContains(part, '-') ? ends.second : ends.first, &last) ||
        last < first) {
      return 0;
    }
    count += size_t{last} - first + 1;
  }
  return count;
}

std::optional<cpu_set_t> WhereTo(const cpu_set_t& allowed, size_t own,
                                 const std::vector<size_t>& others) {
  if (std::find(others.begin(), others.end(), own) == others.end()) return std::nullopt;
  cpu_set_t free = allowed;
  for (const size_t other : others) CPU_CLR(other, &free);
  if (CPU_COUNT(&free) == 0) return std::nullopt;
  return free;
}

bool Spread::Part() {
  const auto here = [] { return static_cast<uint32_t>(sched_getcpu()) + 1; };
  Core& own = *cores_[rank_];
  const uint32_t core = here();
  // Writes only changes, because others read it.
  if (own.load(std::memory_order_relaxed) != core) own.store(core, std::memory_order_relaxed);
  bool apart = core != 0;
  bool meets = false;
  for (const Core* other : cores_) {
    if (other == &own) continue;
    const uint32_t theirs = other->load(std::memory_order_relaxed);
    apart = apart && theirs != 0 && theirs != core;
    meets = meets || theirs == core;
  }
  if (!meets || core == 0) return apart;

  const int64_t now = clock_.Now();
  if (now < next_move_) return false;
  next_move_ = now + kBetweenMoves;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  std::vector<size_t> others;
  for (const Core* other : cores_) {
    const uint32_t theirs = other->load(std::memory_order_relaxed);
    if (other != &own && theirs != 0) others.push_back(theirs - 1);
  }
  const std::optional<cpu_set_t> free = WhereTo(allowed, core - 1, others);
  if (!free.has_value() || sched_setaffinity(0, sizeof *free, &*free) != 0) return false;
  own.store(here(), std::memory_order_relaxed);
  // Cores that its container gets later are this thread's too, as they were before.
  if (!IsBound(allowed)) std::memset(&allowed, 0xff, sizeof allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
  return false;
}

}  // namespace railhead::shm
