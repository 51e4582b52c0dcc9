// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_PERF_RUNNER_H_
#define RAILHEAD_RUNTIME_PERF_RUNNER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/perf/report.h"

namespace railhead::perf {

struct RunOptions {
  std::vector<uint64_t> sizes;  // bytes, ascending
  int iterations = 20;
  int warmup = 5;
  bool check = false;
};

// Called on rank 0 when the report begins (no rows yet) and after each row.
using OnRow = std::function<void(const Report& report)>;

// Measures all-reduce for every size on this communicator; all ranks call it with the same options.
// The report is the same on all ranks, except for the bytes of the rails.
absl::StatusOr<Report> Run(rhComm_t comm, const RunOptions& options, const OnRow& on_row);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_RUNNER_H_
