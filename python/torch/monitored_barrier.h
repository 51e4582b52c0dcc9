// SPDX-License-Identifier: Apache-2.0
//
// Barrier that names the ranks that do not come. It is made of transfers to and from rank 0, with a
// tag that messages of users do not have.
//
//   MonitoredBarrier({executor, rank, size}, timeout, /*all=*/false);
//
// Throws DistBackendError, with the texts of torch's own monitored barrier in it. The group has
// ended on all ranks then.
#ifndef RAILHEAD_PYTHON_TORCH_MONITORED_BARRIER_H_
#define RAILHEAD_PYTHON_TORCH_MONITORED_BARRIER_H_

#include <chrono>
#include <limits>
#include <memory>

#include "executor.h"

namespace railhead_torch {

inline constexpr int kBarrierTag = std::numeric_limits<int>::max();

struct GroupMember {
  std::shared_ptr<Executor> executor;
  int rank = 0;
  int size = 1;
};

// `all`: names all ranks that have not come within the timeout, and not only the first one.
void MonitoredBarrier(const GroupMember& self, std::chrono::milliseconds timeout, bool all);

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_MONITORED_BARRIER_H_
