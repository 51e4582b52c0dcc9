// SPDX-License-Identifier: Apache-2.0
//
// Measurement of one collective, over all sizes and kinds of values. Used by railhead-perf on every
// rank.
#ifndef RAILHEAD_RUNTIME_PERF_RUNNER_H_
#define RAILHEAD_RUNTIME_PERF_RUNNER_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/perf/collectives.h"
#include "runtime/perf/report.h"
#include "runtime/perf/sizes.h"
#include "runtime/perf/types.h"

namespace railhead::perf {

struct RunOptions {
  const Collective* collective = nullptr;
  std::vector<Kind> kinds;  // all sizes of one kind, then of the next
  SizeRange sizes;
  int root = 0;
  int iterations = 20;
  int warmup = 5;
  bool check = false;
  bool in_windows = false;  // buffers are from rhMemAlloc
  // Called on rank 0 after each pass over all sizes: ranks start another pass unless it returns
  // true. Empty: one pass.
  std::function<bool()> enough;
  // Called on every rank before each pass; the other ranks wait until it returns.
  std::function<void()> before_pass;
};

// Called on rank 0 at the start of the report (without rows) and after each row.
using OnRow = std::function<void(const Report& report)>;

// Measures a collective on this communicator; call it on all ranks with the same options. The
// report is the same on all ranks, except for the bytes of rails. InvalidArgument or OutOfRange if
// the options do not fit the number of ranks; then nothing was measured.
absl::StatusOr<Report> Run(rhComm_t comm, const RunOptions& options, const OnRow& on_row);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_RUNNER_H_
