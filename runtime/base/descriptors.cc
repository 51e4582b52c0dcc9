// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptors.h"

#include <sys/resource.h>

namespace railhead {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  // Where even that is forbidden, who needs more descriptors says so.
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t DescriptorLimit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace railhead
