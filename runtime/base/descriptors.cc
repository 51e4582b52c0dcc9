// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>

#include <cerrno>
#include <memory>

#include "absl/strings/numbers.h"

namespace railhead {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  // If even that is forbidden, code that needs more descriptors reports it.
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t DescriptorLimit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::optional<uint64_t> FreeDescriptors() {
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> open(::opendir("/proc/self/fd"));
  if (open == nullptr) {
    return errno == EMFILE ? std::optional<uint64_t>(0) : std::nullopt;
  }
  const uint64_t limit = DescriptorLimit();
  const auto own = static_cast<uint64_t>(::dirfd(open.get()));
  uint64_t used = 0;
  // The limit is one of their numbers: those above it were opened before it was lowered.
  while (const dirent* entry = ::readdir(open.get())) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number) && number < limit && number != own) ++used;
  }
  return limit - used;
}

}  // namespace railhead
